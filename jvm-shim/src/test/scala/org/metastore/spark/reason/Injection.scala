package org.metastore.spark.reason

import java.util.concurrent.atomic.AtomicInteger

/** An error that tests throw into our work, wherever a place of a name is passed. */
object Injection {

  /** Everything of ours. */
  private val Ours = "ours"
  private val Root = getClass.getName.stripSuffix("reason.Injection$")

  private final case class Armed(place: String, error: Class[_ <: Throwable])

  @volatile private var armed = Option.empty[Armed]
  private val thrown = new AtomicInteger()

  /** From now on throws an error of a class at a place. */
  def arm(place: String, error: String): Unit = {
    thrown.set(0)
    armed = Some(Armed(place, Class.forName(error).asSubclass(classOf[Throwable])))
  }

  /** Throws no more; returns how often it has thrown. */
  def disarm(): Int = {
    armed = None
    thrown.get
  }

  /** Throws where the place is armed. */
  def pass(place: String): Unit = for (one <- armed if one.place == place) fail(one)

  /** Throws where a rule of ours is armed, or `Ours`, and calls this, itself or through Spark. */
  def passBelow(): Unit = for (one <- armed if isBelow(one.place)) fail(one)

  private def fail(one: Armed): Unit = {
    thrown.incrementAndGet()
    throw one.error.getConstructor(classOf[String]).newInstance("injected")
  }

  private def isBelow(place: String): Boolean = {
    val classes = Thread.currentThread.getStackTrace.map(_.getClassName)
    if (place == Ours) classes.exists(isOurs) else classes.exists(_.endsWith(s".scan.$place"))
  }

  private def isOurs(name: String): Boolean =
    name.startsWith(Root) && !name.contains(".scan.Failing") && !name.startsWith(s"${Root}reason.Injection")
}
