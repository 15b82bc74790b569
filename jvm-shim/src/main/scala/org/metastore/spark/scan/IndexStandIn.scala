package org.metastore.spark.scan

import java.lang.reflect.{Constructor, Method, Modifier}

import scala.util.Try

import org.apache.spark.sql.execution.datasources.FileIndex

import org.metastore.spark.tables.Reflection

/**
 * An index of a table format's own class that answers as another index does.
 *
 * Listeners for lineage, costs and audits recognize scans of a table format by the class of their index, and
 * call its methods.
 */
trait IndexStandIn {

  /** The index that answers. */
  def index: FileIndex
}

private[scan] object IndexStandIn {

  /** Unwraps a scan's location: an index that is no stand-in is returned itself. */
  def behind(location: FileIndex): FileIndex = location match {
    case standIn: IndexStandIn => standIn.index
    case _ => location
  }

  /**
   * Copies the format's index; the copy lists what `index` lists.
   *
   * @param original of a case class, whose constructor only keeps its arguments
   * @return `index` itself if no copy can be made
   */
  def create(index: FileIndex, original: FileIndex): FileIndex =
    ScanPlanner.recover("The index of a scan", index) {
      val arguments = original.asInstanceOf[Product].productIterator.map(_.asInstanceOf[AnyRef]).toSeq
      subclassOf.get(original.getClass).get.newInstance(arguments :+ index: _*).asInstanceOf[FileIndex]
    }

  // The shim is compiled without the table format. So the subclass is compiled here, once for each class.
  private val subclassOf = new ClassValue[Try[Constructor[_]]] {
    override def computeValue(original: Class[_]): Try[Constructor[_]] = Try {
      val source = new StandInSource(original)
      val loader = new BothLoaders(original.getClassLoader)
      val compiler = Reflection.create(Reflection.load("org.codehaus.janino.SimpleCompiler", loader))
      Reflection.call[Any](compiler, "setParentClassLoader", loader)
      Reflection.call[Any](compiler, "cook", source.text)
      Reflection.call[ClassLoader](compiler, "getClassLoader").loadClass(source.fullName).getConstructors.head
    }
  }

  /** Finds the table format's classes and ours, wherever their jars are. */
  private final class BothLoaders(format: ClassLoader) extends ClassLoader(format) {
    override def findClass(name: String): Class[_] = classOf[IndexStandIn].getClassLoader.loadClass(name)
  }
}

/** The Java source of a subclass of an index, with the same short name: EXPLAIN shows it. */
private final class StandInSource(original: Class[_]) {
  private val folder = s"${classOf[IndexStandIn].getPackage.getName}.generated"
  private val name = original.getSimpleName
  private val standIn = classOf[IndexStandIn].getName
  private val fileIndex = classOf[FileIndex].getName

  val fullName: String = s"$folder.$name"

  def text: String =
    s"""package $folder;
       |public final class $name extends ${original.getCanonicalName} implements $standIn {
       |  private final $fileIndex index;
       |  public $name(${parameters(constructed :+ classOf[FileIndex])}) {
       |    super(${names(constructed.length)});
       |    this.index = p${constructed.length};
       |  }
       |  public $fileIndex index() { return index; }
       |  public boolean equals(Object other) {
       |    return other instanceof $standIn && index.equals((($standIn) other).index());
       |  }
       |  public int hashCode() { return index.hashCode(); }
       |${classOf[FileIndex].getMethods.filter(isForwarded).map(method).mkString("\n")}
       |}
       |""".stripMargin

  private def constructed: Seq[Class[_]] = original.getConstructors.head.getParameterTypes.toSeq

  /** Whether the other index answers: it answers all methods but `toString`. */
  private def isForwarded(method: Method): Boolean =
    !Modifier.isStatic(method.getModifiers) && method.getName != "toString"

  private def method(forwarded: Method): String = {
    val name = forwarded.getName
    val types = forwarded.getParameterTypes.toSeq
    val result = forwarded.getReturnType
    val keyword = if (result == Void.TYPE) "" else "return "
    val head = s"public ${result.getCanonicalName} $name(${parameters(types)})"
    s"  $head { ${keyword}index.$name(${names(types.length)}); }"
  }

  private def parameters(types: Seq[Class[_]]): String = {
    val declarations =
      for ((single, number) <- types.zipWithIndex) yield s"${single.getCanonicalName} p$number"
    declarations.mkString(", ")
  }

  private def names(count: Int): String = (0 until count).map(number => s"p$number").mkString(", ")
}
