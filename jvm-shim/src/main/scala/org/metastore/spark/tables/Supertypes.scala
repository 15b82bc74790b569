package org.metastore.spark.tables

/** The classes and interfaces that a class extends. */
object Supertypes {

  /** A class and those that it extends. */
  def classesOf(c: Class[_]): Iterator[Class[_]] =
    Iterator.iterate[Class[_]](c)(_.getSuperclass).takeWhile(_ != null)

  /** Every interface that a class implements. */
  def interfacesOf(c: Class[_]): Seq[Class[_]] = interfaces.get(c)

  private val interfaces = new ClassValue[Seq[Class[_]]] {
    override def computeValue(c: Class[_]): Seq[Class[_]] = supertypes(c).filter(_.isInterface).toSeq.distinct
  }

  private def supertypes(c: Class[_]): Iterator[Class[_]] =
    if (c == null) Iterator.empty
    else Iterator.single(c) ++ supertypes(c.getSuperclass) ++ c.getInterfaces.iterator.flatMap(supertypes)
}
