package org.metastore.spark.tables

/** Members of a table format's objects that are not public, by name, of the class or one that it extends. */
private[tables] object HiddenMembers {

  /**
   * Calls a method without parameters.
   *
   * @throws NoSuchMethodException another version of the format
   */
  def call(on: AnyRef, name: String): AnyRef = {
    val method = classes(on).flatMap(_.getDeclaredMethods).find(m => m.getName == name && m.getParameterCount == 0)
      .getOrElse(throw new NoSuchMethodException(s"${on.getClass.getName}.$name"))
    method.setAccessible(true)
    method.invoke(on)
  }

  /**
   * The value of a field.
   *
   * @throws NoSuchFieldException another version of the format
   */
  def field(on: AnyRef, name: String): AnyRef = {
    val field = classes(on).flatMap(_.getDeclaredFields).find(_.getName == name)
      .getOrElse(throw new NoSuchFieldException(s"${on.getClass.getName}.$name"))
    field.setAccessible(true)
    field.get(on)
  }

  private def classes(of: AnyRef): Iterator[Class[_]] =
    Iterator.iterate[Class[_]](of.getClass)(_.getSuperclass).takeWhile(_ != null)
}
