package org.metastore.spark.scan

import java.lang.reflect.{Constructor, Modifier}

import scala.collection.mutable

/**
 * Makes and copies Spark's case classes by the names of their fields.
 *
 * One build of the shim serves several lines of Spark, and these classes gain fields from line to line. A
 * compiled call of `copy` or of a constructor names all fields of one line, and fails on another line.
 */
private[scan] object CaseClassCopy {

  /**
   * Copies an instance with new values of some fields.
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
   * Makes an instance with these fields; all other fields have their defaults.
   *
   * @throws IllegalArgumentException a field is not one of the class
   */
  def create[T <: Product](caseClass: Class[T], fields: (String, Any)*): T = {
    val names = fieldNames(caseClass)
    requireFields(caseClass, names, fields)
    val explicit = fields.toMap
    val values = mutable.ArrayBuffer.empty[Any]
    for (name <- names) values += explicit.getOrElse(name, default(caseClass, values.toSeq))
    construct(caseClass, values.toSeq)
  }

  private def construct[T](caseClass: Class[_ <: T], values: Seq[Any]): T =
    constructorOf(caseClass).newInstance(values.map(_.asInstanceOf[AnyRef]): _*).asInstanceOf[T]

  private def constructorOf(caseClass: Class[_]): Constructor[_] =
    caseClass.getConstructors.maxBy(_.getParameterCount)

  /** The names of the fields in order: lazy values, which are not final, come before the parameters. */
  private def fieldNames(caseClass: Class[_]): IndexedSeq[String] = {
    val fields = caseClass.getDeclaredFields.filter { field =>
      Modifier.isFinal(field.getModifiers) && !Modifier.isStatic(field.getModifiers)
    }
    fields.take(constructorOf(caseClass).getParameterCount).map(_.getName).toIndexedSeq
  }

  private def requireFields(caseClass: Class[_], names: Seq[String], fields: Seq[(String, Any)]): Unit =
    for ((name, _) <- fields)
      require(names.contains(name), s"${caseClass.getSimpleName} has no field $name")

  // Java promises no order of declared fields, although every JVM keeps that of the class file.
  private def requireOrder(original: Product, names: Seq[String], i: Int): Unit = {
    val value = original.getClass.getMethod(names(i)).invoke(original)
    require(value == original.productElement(i), s"${original.productPrefix} has its fields in another order")
  }

  /** The default of the field after these values. It may depend on the values of earlier parameter lists. */
  private def default(caseClass: Class[_], values: Seq[Any]): Any = {
    val companion =
      Class.forName(caseClass.getName + "$", true, caseClass.getClassLoader).getField("MODULE$").get(null)
    val name = "apply$default$" + (values.length + 1)
    companion.getClass.getMethods.find(_.getName == name) match {
      case Some(method) =>
        val earlier = values.take(method.getParameterCount).map(_.asInstanceOf[AnyRef])
        method.invoke(companion, earlier: _*)
      case None => throw new NoSuchMethodException(s"${caseClass.getName}.$name")
    }
  }
}
