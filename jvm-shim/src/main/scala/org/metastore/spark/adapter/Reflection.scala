package org.metastore.spark.adapter

/** What classes of table formats are: none of them is known when the shim is compiled. */
private[adapter] object Reflection {

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val interfacesOf = new ClassValue[Seq[Class[_]]] {
    override def computeValue(c: Class[_]): Seq[Class[_]] = lineage(c).filter(_.isInterface).toSeq.distinct
  }

  /** Every interface that the class implements. */
  def interfaces(c: Class[_]): Seq[Class[_]] = interfacesOf.get(c)

  private def lineage(c: Class[_]): Iterator[Class[_]] =
    if (c == null) Iterator.empty
    else Iterator.single(c) ++ lineage(c.getSuperclass) ++ c.getInterfaces.iterator.flatMap(lineage)
}
