// Compiles and formats the shim for people who edit it. The jar is made by jvm-shim/hatch_build.py alone.
//
//   uv run python jvm-shim/sbt.py compile        what changed, for Spark 4.1 and 3.5
//   uv run python jvm-shim/sbt.py scalafmtAll
//
// jvm-shim/sbt.py passes, for each line of Spark, the folder of a pyspark, its Scala and the options of the compiler.

def passed(name: String, line: String): Option[String] = sys.props.get(s"$name.$line")

def shim(line: String): Project = {
  val folder = file(s"jvm-shim/target/sbt/spark-$line")
  Project(s"spark-$line".replace('.', '_'), folder).disablePlugins(ScalafmtPlugin).settings(
    scalaVersion := passed("scala", line).getOrElse(scalaVersion.value),
    scalacOptions := passed("options", line).toSeq.flatMap(_.split(' ')),
    Compile / unmanagedSourceDirectories :=
      Seq("scala", "scala-entry", s"scala-spark-${line.head}", s"scala-spark-$line")
        .map(file("jvm-shim/src/main").getAbsoluteFile / _),
    Test / unmanagedSourceDirectories := Seq(file("jvm-shim/src/test/scala").getAbsoluteFile),
    Compile / unmanagedJars := passed("pyspark", line).toSeq.flatMap { pyspark =>
      (file(pyspark) / "jars" * ("*.jar" -- "metastore-*.jar")).classpath
    },
    Test / unmanagedJars := (Compile / unmanagedJars).value
  )
}

lazy val spark41 = shim("4.1")
lazy val spark35 = shim("3.5")

lazy val root = (project in file("."))
  .aggregate(Seq("4.1" -> spark41, "3.5" -> spark35).collect {
    case (line, shim) if passed("pyspark", line).nonEmpty => shim.project
  }: _*)
  .settings(
    Compile / scalafmt / unmanagedSources := (baseDirectory.value / "jvm-shim" / "src" ** "*.scala").get
  )
