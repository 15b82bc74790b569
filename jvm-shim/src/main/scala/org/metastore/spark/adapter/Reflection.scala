package org.metastore.spark.adapter

import java.lang.reflect.{InvocationTargetException, Method}
import java.util.concurrent.ConcurrentHashMap

/** Calls methods of table formats by name: none of their classes is known when the shim is compiled. */
private[adapter] object Reflection {
  private type Signature = (String, Seq[Class[_]])

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val methods = new ClassValue[ConcurrentHashMap[Signature, Method]] {
    override def computeValue(c: Class[_]): ConcurrentHashMap[Signature, Method] = new ConcurrentHashMap
  }
  private val interfacesOf = new ClassValue[Seq[Class[_]]] {
    override def computeValue(c: Class[_]): Seq[Class[_]] = lineage(c).filter(_.isInterface).toSeq.distinct
  }

  /**
   * The method of that name and parameters, public or not, of the class or what it inherits.
   *
   * @throws NoSuchMethodException another version of the format: the caller steps aside.
   */
  def method(in: Class[_], name: String, parameters: Class[_]*): Method =
    methods.get(in).computeIfAbsent((name, parameters), _ => find(in, name, parameters))

  private def find(in: Class[_], name: String, parameters: Seq[Class[_]]): Method = {
    val found = lineage(in).flatMap { c =>
      try Iterator(c.getDeclaredMethod(name, parameters: _*))
      catch { case _: NoSuchMethodException => Iterator.empty }
    }
    if (!found.hasNext) throw new NoSuchMethodException(s"${in.getName}.$name")
    val method = found.next()
    method.setAccessible(true)
    method
  }

  /** Calls a method without parameters. */
  def call(on: AnyRef, name: String): AnyRef = invoke(method(on.getClass, name), on)

  /** Calls a method with one parameter of the given class. */
  def call(on: AnyRef, name: String, parameter: Class[_], argument: AnyRef): AnyRef =
    invoke(method(on.getClass, name, parameter), on, argument)

  /** Invokes, and throws what the method itself threw. */
  def invoke(method: Method, on: AnyRef, arguments: AnyRef*): AnyRef =
    try method.invoke(on, arguments: _*)
    catch { case e: InvocationTargetException if e.getCause != null => throw e.getCause }

  /** Whether the class or one that it extends has exactly that name. */
  def extendsClass(c: Class[_], name: String): Boolean =
    Iterator.iterate[Class[_]](c)(_.getSuperclass).takeWhile(_ != null).exists(_.getName == name)

  /** Every interface that the class implements. */
  def interfaces(c: Class[_]): Seq[Class[_]] = interfacesOf.get(c)

  private def lineage(c: Class[_]): Iterator[Class[_]] =
    if (c == null) Iterator.empty
    else Iterator.single(c) ++ lineage(c.getSuperclass) ++ c.getInterfaces.iterator.flatMap(lineage)
}
