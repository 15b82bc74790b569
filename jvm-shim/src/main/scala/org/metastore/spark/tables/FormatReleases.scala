package org.metastore.spark.tables

import scala.util.Try

import org.metastore.spark.reason.{Indexed, Reason, ReasonCode, ReasonedFailure}

/** A table format on the class path; `version` is None if its jar does not have one. */
final case class Release(format: FormatDescription, version: Option[String]) {

  /** The reason to leave its tables alone: it is older than the releases whose members we know. */
  lazy val refusal: Option[Reason] = // needed for each scan of each plan
    for (present <- version if FormatReleases.isBefore(present, format.oldest))
      yield needs(format.oldest, present)

  /** The reason to leave its tables alone when it lacks a member. */
  def lacks(member: String): Reason = {
    def present = s"${version.getOrElse("another")} without $member"
    refusal.getOrElse(needs(s"${format.oldest} to ${format.newest}", present))
  }

  private def needs(releases: String, present: String) =
    Reason(ReasonCode.NeedsRelease, "needed" -> s"${format.title} $releases", "found" -> present)
}

/** The releases of the table formats on the class path. */
object FormatReleases {
  private lazy val formats = FormatDescription.all.filter(_.packages.nonEmpty)

  // The release goes with its class: formats may be loaded and unloaded again.
  private val releases = new ClassValue[Option[Release]] {
    override def computeValue(c: Class[_]): Option[Release] = {
      // A catalog's own class may extend one of a table format.
      val matching = for {
        supertype <- Supertypes.classesOf(c)
        format <- formatOf(supertype.getName)
      } yield Release(format, versionOf(supertype, format).filter(numbers(_).nonEmpty))
      Indexed.first(matching)
    }
  }

  private def formatOf(className: String): Option[FormatDescription] = formats.find(_.hasClass(className))

  private def versionOf(c: Class[_], format: FormatDescription): Option[String] =
    format.versionClass match {
      case Some(name) => versionByMethod(name, c.getClassLoader)
      case None =>
        for {
          manifest <- Option(c.getPackage)
          version <- Option(manifest.getImplementationVersion)
        } yield version
    }

  private def versionByMethod(className: String, loader: ClassLoader): Option[String] =
    Try(Class.forName(className, true, loader).getMethod("version").invoke(null).toString).toOption

  /** The release that a class belongs to, if it is a table format's. */
  def release(c: Class[_]): Option[Release] = releases.get(c)

  /** The release that a class of this name would belong to. */
  def releaseOfClass(name: String, loader: ClassLoader): Option[Release] =
    formatOf(name).flatMap(in(loader, _))

  private def in(loader: ClassLoader, format: FormatDescription): Option[Release] =
    for {
      name <- format.knownClass
      knownClass <- Try(Class.forName(name, false, loader)).toOption
      release <- release(knownClass)
    } yield release

  /** The releases that a class loader finds. */
  def all(loader: ClassLoader): Seq[Release] =
    formats.flatMap(in(loader, _))

  /** The version of the release that an object belongs to. */
  def version(on: AnyRef): Option[String] = release(on.getClass).flatMap(_.version)

  /** The reason to leave an object alone: its release is too old. */
  def refusal(on: AnyRef): Option[Reason] = release(on.getClass).flatMap(_.refusal)

  /** @throws UnsupportedRelease where there is such a reason */
  def require(on: AnyRef): Unit = refusal(on).foreach(reason => throw new UnsupportedRelease(reason))

  private[tables] def isBefore(version: String, oldest: String): Boolean = {
    val pairs = numbers(version).zipAll(numbers(oldest), 0, 0)
    val different = pairs.dropWhile { case (number, needed) => number == needed }
    different.nonEmpty && different.head._1 < different.head._2
  }

  /** The numbers at the beginning of a version: those of `1.5.0-SNAPSHOT` are 1, 5 and 0. */
  private def numbers(version: String): Seq[Int] =
    version.split("[.-]").toSeq.takeWhile(part => Try(part.toInt).isSuccess).map(_.toInt)
}

/** This release of a table format cannot be used: `reason` says which one is needed. */
final class UnsupportedRelease(override val reason: Reason)
  extends RuntimeException(reason.sentence)
  with ReasonedFailure

object UnsupportedRelease {

  /** The error about a missing member that a release should have. */
  def apply(release: Option[Release], member: String): UnsupportedRelease = {
    def unknownRelease = Reason(ReasonCode.Failed, "error" -> s"there is no $member")
    new UnsupportedRelease(release.fold(unknownRelease)(_.lacks(member)))
  }
}
