package org.metastore.spark.tables

import java.lang.reflect.{InvocationTargetException, Method}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._

/**
 * Calls public methods of a table format's objects by name: the shim is compiled without any table format, and the formats'
 * classes are often not public where their interfaces are.
 */
final class Reflected {

  /**
   * Calls `target.name(arguments)`; what the method throws is thrown.
   *
   * @throws NoSuchMethodException where this version of the format has no such method
   */
  def call[T](target: AnyRef, name: String, arguments: AnyRef*): T = {
    try Reflected.method(target.getClass, name, arguments.length).invoke(target, arguments: _*).asInstanceOf[T]
    catch { case e: InvocationTargetException => throw e.getCause }
  }

  /** The elements of a Java Iterable that a method returns. */
  def list(target: AnyRef, name: String, arguments: AnyRef*): Seq[AnyRef] =
    call[java.lang.Iterable[AnyRef]](target, name, arguments: _*).asScala.toList
}

private object Reflected {

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val methods = new ClassValue[ConcurrentHashMap[(String, Int), Method]] {
    override def computeValue(c: Class[_]): ConcurrentHashMap[(String, Int), Method] = new ConcurrentHashMap
  }

  def method(owner: Class[_], name: String, arity: Int): Method =
    methods.get(owner).computeIfAbsent((name, arity), _ => find(owner, name, arity))

  private def find(owner: Class[_], name: String, arity: Int): Method = {
    // A public class shows what it inherits from one that is not public as bridges only.
    val named = owner.getMethods.filter(m => m.getName == name && m.getParameterCount == arity).sortBy(_.isBridge)
    val method = named.headOption.getOrElse(throw new NoSuchMethodException(s"${owner.getName}.$name"))
    method.setAccessible(true)
    method
  }
}
