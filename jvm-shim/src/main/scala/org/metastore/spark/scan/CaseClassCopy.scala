package org.metastore.spark.scan

import java.lang.reflect.{Constructor, Modifier}

import scala.collection.mutable

/**
 * Makes and copies Spark's case classes by the names of their fields.
 *
 * One build of the shim serves several lines of Spark, and these classes gain fields from line to line. What the compiler makes
 * of `copy` and of a constructor names all fields of the line that it compiles for, and is not found on another line.
 */
private[scan] object CaseClassCopy {

  /**
   * Returns a copy with other values of some fields.
   *
   * @throws IllegalArgumentException a field is not one of the class
   */
  def apply[T <: Product](original: T, changes: (String, Any)*): T = {
    val names = fieldNames(original.getClass)
    requireFields(original.getClass, names, changes)
    names.indices.foreach(requireOrder(original, names, _))
    val changed = changes.toMap
    val values = names.indices.map(i => changed.getOrElse(names(i), original.productElement(i)))
    construct(original.getClass, values)
  }

  /**
   * Makes an instance of some fields; the others have the defaults of the class.
   *
   * @throws IllegalArgumentException a field is not one of the class
   */
  def create[T <: Product](made: Class[T], fields: (String, Any)*): T = {
    val names = fieldNames(made)
    requireFields(made, names, fields)
    val explicit = fields.toMap
    val values = mutable.ArrayBuffer.empty[Any]
    for (name <- names) values += explicit.getOrElse(name, default(made, values.toSeq))
    construct(made, values.toSeq)
  }

  private def construct[T](made: Class[_ <: T], values: Seq[Any]): T =
    constructorOf(made).newInstance(values.map(_.asInstanceOf[AnyRef]): _*).asInstanceOf[T]

  private def constructorOf(made: Class[_]): Constructor[_] = made.getConstructors.maxBy(_.getParameterCount)

  /** The compiler writes lazy values first, which are not final, then the parameters of a case class in their order. */
  private def fieldNames(made: Class[_]): IndexedSeq[String] = {
    val fields = made.getDeclaredFields.filter { field =>
      Modifier.isFinal(field.getModifiers) && !Modifier.isStatic(field.getModifiers)
    }
    fields.take(constructorOf(made).getParameterCount).map(_.getName).toIndexedSeq
  }

  private def requireFields(made: Class[_], names: Seq[String], fields: Seq[(String, Any)]): Unit =
    for ((name, _) <- fields)
      require(names.contains(name), s"${made.getSimpleName} has no field $name")

  // Java promises no order of declared fields, although every JVM keeps that of the class file.
  private def requireOrder(original: Product, names: Seq[String], i: Int): Unit = {
    val value = original.getClass.getMethod(names(i)).invoke(original)
    require(value == original.productElement(i), s"${original.productPrefix} has its fields in another order")
  }

  /** The default of the field after these values. That of a later list of parameters may look at those of earlier lists. */
  private def default(made: Class[_], values: Seq[Any]): Any = {
    val companion = Class.forName(made.getName + "$", true, made.getClassLoader).getField("MODULE$").get(null)
    val name = "apply$default$" + (values.length + 1)
    companion.getClass.getMethods.find(_.getName == name) match {
      case Some(method) =>
        val earlier = values.take(method.getParameterCount).map(_.asInstanceOf[AnyRef])
        method.invoke(companion, earlier: _*)
      case None => throw new NoSuchMethodException(s"${made.getName}.$name")
    }
  }
}
