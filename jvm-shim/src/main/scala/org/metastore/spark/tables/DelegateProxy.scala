package org.metastore.spark.tables

import java.lang.reflect.{InvocationHandler, Method, Modifier, Proxy}

/**
 * A stand-in for an object of a table format: it forwards every call to the delegate, unless a subclass
 * answers it.
 */
private[spark] abstract class DelegateProxy(val delegate: AnyRef) extends InvocationHandler {

  /** The part of equality beside the delegate: plans are reused and cached by equality. */
  protected def fingerprint: AnyRef

  /** Answers a call itself, or None to forward it. */
  protected def answer(method: Method, arguments: Array[AnyRef]): Option[AnyRef]

  override final def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef =
    method.getName match {
      case "equals" if isOf(method, classOf[Object]) => java.lang.Boolean.valueOf(sameAs(arguments(0)))
      case "hashCode" if isOf(method, classOf[Object]) =>
        java.lang.Integer.valueOf(31 * delegate.hashCode + fingerprint.hashCode)
      case _ => answer(method, arguments).getOrElse(forward(method, arguments))
    }

  /** The delegate's own answer. */
  protected final def forward(method: Method, arguments: Array[AnyRef]): AnyRef =
    Reflection.unwrapped(method.invoke(delegate, arguments: _*))

  private def isOf(method: Method, c: Class[_]): Boolean = method.getDeclaringClass == c

  private def sameAs(other: AnyRef): Boolean = DelegateProxy.fromProxy(other).exists { that =>
    that.getClass == getClass && that.delegate == delegate && that.fingerprint == fingerprint
  }
}

private[spark] object DelegateProxy {

  /**
   * The stand-in for a delegate, with all of the delegate's public interfaces, in the delegate's own class
   * loader.
   */
  def create[A](handler: DelegateProxy, as: Class[A]): A = {
    val loader = handler.delegate.getClass.getClassLoader
    val visible =
      Supertypes.interfacesOf(handler.delegate.getClass).filter(i => Modifier.isPublic(i.getModifiers))
    as.cast(Proxy.newProxyInstance(loader, visible.toArray, handler))
  }

  /** The delegate of a stand-in of ours; any other object itself. */
  def unwrap[A <: AnyRef](any: A): A = fromProxy(any).fold(any)(_.delegate.asInstanceOf[A])

  /** The handler behind an object, if it is one of our stand-ins. */
  def fromProxy(any: Any): Option[DelegateProxy] = any match {
    case proxy: AnyRef if Proxy.isProxyClass(proxy.getClass) =>
      Proxy.getInvocationHandler(proxy) match {
        case handler: DelegateProxy =>
          Some(handler)
        case _ => None
      }
    case _ => None
  }
}
