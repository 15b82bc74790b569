// The same shim that pip builds (jvm-shim/hatch_build.py), for people who edit Scala: one project a Spark line, compiled
// against the jars of an installed pyspark, so that it sees exactly the classes it will run with.
//
//   sbt -Dpyspark.4.1=<pyspark folder> [-Dpyspark.3.5=<pyspark folder>] package
//
// `uv run python jvm-shim/sbt.py package` fetches sbt and both pysparks and passes their folders.

ThisBuild / organization := "org.metastore"
ThisBuild / version := "0.1.0"

// One source serves Scala 2.12 and 2.13, so it uses the collections' older names.
val crossBuild = "-Wconf:cat=deprecation&origin=scala\\.collection\\.JavaConverters.*:s"
val common = Seq("-deprecation", "-feature", "-unchecked", "-Xlint", "-encoding", "UTF-8", crossBuild)

/** The exact version of the Spark compiled against, read off the name of its core jar. */
def sparkOf(line: String): String =
  sys.props.get(s"pyspark.$line").toSeq.flatMap(home => (file(home) / "jars" * "spark-core_*.jar").get)
    .map(_.base.split('-').last).headOption.getOrElse(line)

def shim(spark: String, scala: String, options: Seq[String]): Project =
  Project(s"shim-spark-${spark.replace('.', '_')}", file(s"jvm-shim/target/spark-$spark")).settings(
    name := s"metastore-shim-spark-$spark",
    scalaVersion := scala,
    scalacOptions := common ++ options,
    Compile / unmanagedSourceDirectories :=
      Seq("scala", s"scala-spark-$spark").map(baseDirectory.value / "../../src/main" / _),
    Compile / unmanagedResourceDirectories := Seq(baseDirectory.value / "../../src/main/resources"),
    Compile / resourceGenerators += Def.task {
      val facts = Seq("version" -> version.value, "spark" -> sparkOf(spark), "scala" -> scala,
        "source" -> sys.props.getOrElse(s"source.$spark", "unknown"))
      val file = (Compile / resourceManaged).value / "metastore-shim.properties"
      IO.write(file, facts.map { case (key, value) => s"$key=$value\n" }.mkString)
      Seq(file)
    }.taskValue,
    Compile / unmanagedJars := sys.props.get(s"pyspark.$spark").toSeq.flatMap { home =>
      (file(home) / "jars" * ("*.jar" -- "metastore-*.jar")).classpath
    }
  )

lazy val spark41 = shim("4.1", "2.13.17", Seq("-Werror", "-release", "17"))
lazy val spark35 = shim("3.5", "2.12.18", Seq("-Xfatal-warnings", "-target:jvm-1.8"))

lazy val root = (project in file("."))
  .aggregate(Seq("4.1" -> spark41, "3.5" -> spark35).collect {
    case (line, project) if sys.props.contains(s"pyspark.$line") => project.project
  }: _*)
  .settings(publish / skip := true)
