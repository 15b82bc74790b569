package org.metastore.spark.tables

import java.lang.invoke.MethodType
import java.lang.reflect.{AccessibleObject, Field, InvocationTargetException, Method}
import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._
import scala.reflect.ClassTag

import org.metastore.spark.reason.Indexed

/**
 * Members of a table format's objects by name.
 *
 * The shim is compiled without any table format, and the formats' classes are often not public where their
 * interfaces are. Releases rename members and give them other types: a member is looked up by every name that
 * it has had, and a result of an unexpected type counts as missing. A missing member is an
 * [[UnsupportedRelease]].
 */
object Reflection {

  /**
   * Calls `target.name(arguments)`, public or not; what the method throws is thrown.
   *
   * @throws UnsupportedRelease where this release of the format has no such method, or one that answers
   *                            otherwise
   */
  def call[T: ClassTag](target: AnyRef, name: String, arguments: AnyRef*): T =
    as[T](target.getClass, name, invoke(method(target.getClass, name, arguments), target, arguments))

  /** Calls a static method, as `call` does. */
  def callStatic[T: ClassTag](owner: Class[_], name: String, arguments: AnyRef*): T =
    as[T](owner, name, invoke(method(owner, name, arguments), null, arguments))

  /** Makes an object of a public class, as `call` calls a method. */
  def create(owner: Class[_], arguments: AnyRef*): AnyRef = {
    val types = classes(arguments)
    val constructor = owner.getConstructors.find(candidate => accepts(candidate.getParameterTypes, types))
    unwrapped(required(owner, "<init>", constructor).newInstance(arguments: _*).asInstanceOf[AnyRef])
  }

  /** Calls a Scala method whose later parameters differ between releases and have defaults. */
  def callWithDefaults[T: ClassTag](target: AnyRef, name: String, arguments: AnyRef*): T = {
    val overloads = target.getClass.getMethods.filter(_.getName == name)
    if (overloads.isEmpty) throw missing(target.getClass, name)
    val fewest = overloads.map(_.getParameterCount).min
    val defaults =
      for (i <- arguments.length + 1 to fewest) yield call[AnyRef](target, s"$name$$default$$$i")
    call[T](target, name, arguments ++ defaults: _*)
  }

  /**
   * The value of the first of these that there is: a method without parameters, or a field.
   *
   * @throws UnsupportedRelease where this release has none of them, or one that holds something else
   */
  def value[T: ClassTag](target: AnyRef, names: String*): T = {
    val owner = target.getClass
    Indexed.first(names.iterator.flatMap(valueOf(owner, target, _))) match {
      case Some((name, member)) => as[T](owner, name, member)
      case None => throw missing(owner, names.head)
    }
  }

  /** Whether there is a method without parameters of that name. */
  def has(target: AnyRef, name: String): Boolean = find(target.getClass, name, Nil).isDefined

  /** The elements of a Java Iterable that a method returns. */
  def list(target: AnyRef, name: String, arguments: AnyRef*): Seq[AnyRef] =
    call[java.lang.Iterable[AnyRef]](target, name, arguments: _*).asScala.toList

  /** The value of an Option, of Java's Optional, or of a format's own class with the methods of Java's. */
  def option[T <: AnyRef: ClassTag](optional: AnyRef): Option[T] = optional match {
    case option: Option[_] => option.map(value => as[T](optional.getClass, "get", value.asInstanceOf[AnyRef]))
    case other => if (call[Boolean](other, "isPresent")) Some(call[T](other, "get")) else None
  }

  /**
   * The method without parameters of a public class or interface that has one of these names, for frequent
   * calls.
   *
   * @throws UnsupportedRelease where this release has none of them
   */
  def method(owner: Class[_], names: String*): Method =
    required(owner, names.head, Indexed.first(names.iterator.flatMap(find(owner, _, Nil))))

  /**
   * A class of a table format.
   *
   * @throws UnsupportedRelease where this release has none of that name
   */
  def load(name: String, loader: ClassLoader): Class[_] =
    try Class.forName(name, false, loader)
    catch {
      case _: ClassNotFoundException =>
        throw UnsupportedRelease(FormatReleases.releaseOfClass(name, loader), name)
    }

  private def method(owner: Class[_], name: String, arguments: Seq[AnyRef]): Method =
    required(owner, name, find(owner, name, classes(arguments)))

  private def classes(arguments: Seq[AnyRef]): Seq[Class[_]] =
    arguments.map(argument => if (argument == null) classOf[Void] else argument.getClass)

  private def invoke(method: Method, target: AnyRef, arguments: Seq[AnyRef]): AnyRef =
    unwrapped(method.invoke(target, arguments: _*))

  /** The result of a reflective call. Throws the exception of the called method itself. */
  private[tables] def unwrapped[T](answer: => T): T =
    try answer
    catch { case e: InvocationTargetException if e.getCause != null => throw e.getCause }

  private def valueOf(owner: Class[_], target: AnyRef, name: String): Option[(String, AnyRef)] =
    find(owner, name, Nil) match {
      case Some(method) => Some(name -> invoke(method, target, Nil))
      case None => field(owner, name).map(name -> _.get(target))
    }

  private def required[T](owner: Class[_], name: String, member: Option[T]): T =
    member.getOrElse(throw missing(owner, name))

  private def missing(owner: Class[_], member: String) =
    UnsupportedRelease(FormatReleases.release(owner), s"${owner.getSimpleName}.$member")

  private def as[T](owner: Class[_], name: String, result: AnyRef)(implicit expected: ClassTag[T]): T = {
    val boxed = MethodType.methodType(expected.runtimeClass).wrap.returnType
    if (result != null && !boxed.isInstance(result)) throw missing(owner, s"$name: ${boxed.getSimpleName}")
    result.asInstanceOf[T]
  }

  // The methods go with their class: formats may be loaded and unloaded again.
  private val methods = new ClassValue[ConcurrentHashMap[(String, Seq[Class[_]]), Option[Method]]] {
    override def computeValue(c: Class[_]): ConcurrentHashMap[(String, Seq[Class[_]]), Option[Method]] =
      new ConcurrentHashMap
  }

  private def find(owner: Class[_], name: String, arguments: Seq[Class[_]]): Option[Method] =
    methods.get(owner).computeIfAbsent((name, arguments), _ => search(owner, name, arguments))

  private def search(owner: Class[_], name: String, arguments: Seq[Class[_]]): Option[Method] = {
    def matching(methods: Array[Method]) =
      methods.iterator.filter(m => m.getName == name && accepts(m.getParameterTypes, arguments))
    // A public class shows what it inherits from one that is not public as bridges only.
    val (bridges, direct) = matching(owner.getMethods).toSeq.partition(_.isBridge)
    def declared = Supertypes.classesOf(owner).flatMap(c => matching(c.getDeclaredMethods))
    accessible(direct.iterator ++ bridges ++ declared)
  }

  /** The first of some members, made accessible. */
  private def accessible[M <: AccessibleObject](members: Iterator[M]): Option[M] =
    if (!members.hasNext) None
    else {
      val member = members.next()
      member.setAccessible(true)
      Some(member)
    }

  private def accepts(parameters: Array[Class[_]], arguments: Seq[Class[_]]): Boolean =
    parameters.toSeq.corresponds(arguments) { (parameter, argument) =>
      argument == classOf[Void] || MethodType.methodType(parameter).wrap.returnType.isAssignableFrom(argument)
    }

  /** A field of a class or of a supertype, for frequent reads. */
  def field(owner: Class[_], name: String): Option[Field] = {
    val fields = Supertypes.classesOf(owner).flatMap(_.getDeclaredFields)
    accessible(fields.filter(_.getName == name))
  }
}
