// The same shim that pip builds (jvm-shim/hatch_build.py), for people who edit Scala: one project a Spark line, compiled
// against the jars of an installed pyspark, so that it sees exactly the classes it will run with.
//
//   sbt -Dpyspark.4.1=<pyspark folder> [-Dpyspark.4.0=<pyspark folder>] [-Dpyspark.3.5=<pyspark folder>] package
//
// `uv run python jvm-shim/sbt.py package` fetches sbt and both pysparks and passes their folders.
//
// The projects below are not read from contract/spark_builds.json: a project needs the exact version of Scala and the jars of
// a pyspark, and the contract has neither. Spark 3.5 with Scala 2.13, for which there is no pyspark, is built by
// jvm-shim/hatch_build.py alone. tests/architecture/test_scripts.py compares them with the contract.

ThisBuild / organization := "org.metastore"
ThisBuild / version := "0.1.0"

// One source serves Scala 2.12 and 2.13, so it uses the collections' older names.
val crossBuild = "-Wconf:cat=deprecation&origin=scala\\.collection\\.JavaConverters.*:s"
val common = Seq("-deprecation", "-feature", "-unchecked", "-Xlint", "-encoding", "UTF-8", crossBuild)

/** Our packages where the sources use them, as in jvm-shim/hatch_build.py, which says why they are renamed for each line. */
val packages = "(?<!\")\\borg\\.(metastore\\.spark|apache\\.spark\\.metastore|apache\\.spark\\.sql\\.metastore)\\b".r

/** The exact version of the Spark compiled against, read off the name of its core jar. */
def sparkOf(line: String): String =
  sys.props.get(s"pyspark.$line").toSeq.flatMap(home => (file(home) / "jars" * "spark-core_*.jar").get)
    .map(_.base.split('-').last).headOption.getOrElse(line)

/** Copies of a line's sources, in packages of their own. */
def relocated(scope: Configuration, spark: String, folders: Seq[String]) = Def.task {
  val root = (baseDirectory.value / "../../src").getCanonicalFile
  folders.flatMap(folder => (root / folder ** "*.scala").get).map { source =>
    val copy = (scope / sourceManaged).value / source.relativeTo(root).get.getPath
    IO.write(copy, packages.replaceAllIn(IO.read(source), _.matched + ".v" + spark.replace(".", "")))
    copy
  }
}

def shim(spark: String, scala: String, options: Seq[String]): Project =
  Project(s"shim-spark-${spark.replace('.', '_')}", file(s"jvm-shim/target/spark-$spark")).disablePlugins(ScalafmtPlugin).settings(
    name := s"metastore-shim-spark-$spark",
    scalaVersion := scala,
    scalacOptions := common ++ options,
    Compile / unmanagedSourceDirectories := Seq(baseDirectory.value / "../../src/main/scala-entry"),
    Compile / sourceGenerators += relocated(Compile, spark, Seq("main/scala", s"main/scala-spark-$spark")).taskValue,
    Test / sourceGenerators += relocated(Test, spark, Seq("test/scala")).taskValue,
    Compile / unmanagedResourceDirectories := Seq(baseDirectory.value / "../../src/main/resources"),
    Compile / resourceGenerators += Def.task {
      val facts = Seq("version" -> version.value, "lines" -> spark, s"spark-$spark" -> sparkOf(spark),
        s"package-$spark-${CrossVersion.binaryScalaVersion(scala)}" -> ("v" + spark.replace(".", "")),
        s"scala-$spark" -> scala, s"source-$spark" -> sys.props.getOrElse(s"source.$spark", "unknown"))
      val file = (Compile / resourceManaged).value / "metastore-shim.properties"
      IO.write(file, facts.map { case (key, value) => s"$key=$value\n" }.mkString)
      val contract = ((baseDirectory.value / "../../../python/metastore/contract").getCanonicalFile * "*.json").get.map { document =>
        val copy = (Compile / resourceManaged).value / "metastore-contract" / document.getName
        IO.copyFile(document, copy)
        copy
      }
      file +: contract
    }.taskValue,
    Test / unmanagedJars := (Compile / unmanagedJars).value,
    Compile / unmanagedJars := sys.props.get(s"pyspark.$spark").toSeq.flatMap { home =>
      (file(home) / "jars" * ("*.jar" -- "metastore-*.jar")).classpath
    }
  )

lazy val spark41 = shim("4.1", "2.13.17", Seq("-Werror", "-release", "17"))
lazy val spark40 = shim("4.0", "2.13.16", Seq("-Werror", "-release", "17"))
lazy val spark35 = shim("3.5", "2.12.18", Seq("-Xfatal-warnings", "-target:jvm-1.8"))

lazy val root = (project in file("."))
  .aggregate(Seq("4.1" -> spark41, "4.0" -> spark40, "3.5" -> spark35).collect {
    case (line, project) if sys.props.contains(s"pyspark.$line") => project.project
  }: _*)
  .settings(
    publish / skip := true,
    Compile / scalafmt / unmanagedSources := (baseDirectory.value / "jvm-shim" / "src" ** "*.scala").get // of all lines, once
  )
