package org.metastore.spark.tables

import scala.util.Try

import org.metastore.spark.reason.{Indexed, Reason, ReasonCode, ReasonedFailure}

/** A table format as it is on the class path; `version` is None where its jar does not tell. */
final case class Release(format: FormatDescription, version: Option[String]) {

  /** Why its tables are left alone: it is older than any release whose members and meaning we know. */
  def refusal: Option[Reason] =
    version.filter(FormatReleases.isBefore(_, format.oldest)).map(found => needs(format.oldest, found))

  /** Why, where something that it should have is missing. */
  def lacks(member: String): Reason =
    refusal.getOrElse(needs(
      s"${format.oldest} to ${format.newest}",
      s"${version.getOrElse("another")} without $member"))

  private def needs(releases: String, found: String) =
    Reason(ReasonCode.NeedsRelease, "needed" -> s"${format.title} $releases", "found" -> found)
}

/** The releases of table formats that are found, and which of them are known. */
object FormatReleases {
  private lazy val formats = FormatDescription.all.filter(_.packages.nonEmpty)

  // What is found goes with its class: formats may be loaded and unloaded again.
  private val releases = new ClassValue[Option[Release]] {
    override def computeValue(c: Class[_]): Option[Release] = {
      // A catalog's own class may extend one of a table format.
      val found = for {
        known <- Supertypes.classesOf(c)
        format <- formats.find(_.hasClass(known.getName))
      } yield Release(format, versionOf(known, format).filter(numbers(_).nonEmpty))
      Indexed.first(found)
    }
  }

  private def versionOf(c: Class[_], format: FormatDescription): Option[String] =
    format.versionClass match {
      case Some(name) => versionByMethod(name, c.getClassLoader)
      case None => Option(c.getPackage).flatMap(manifest => Option(manifest.getImplementationVersion))
    }

  private def versionByMethod(className: String, loader: ClassLoader): Option[String] =
    Try(Class.forName(className, true, loader).getMethod("version").invoke(null).toString).toOption

  /** The release that a class belongs to, if it is a table format's. */
  def ofClass(c: Class[_]): Option[Release] = releases.get(c)

  /** The release that a class of this name would belong to. */
  def releaseOfClass(name: String, loader: ClassLoader): Option[Release] =
    formats.find(_.hasClass(name)).flatMap(in(loader, _))

  private def in(loader: ClassLoader, format: FormatDescription): Option[Release] =
    for {
      name <- format.knownClass
      known <- Try(Class.forName(name, false, loader)).toOption
      release <- ofClass(known)
    } yield release

  /** The releases that a class loader finds. */
  def all(loader: ClassLoader): Seq[Release] =
    formats.flatMap(in(loader, _))

  /** Why nothing is done with an object of a release that is too old. */
  def refusal(on: AnyRef): Option[Reason] = ofClass(on.getClass).flatMap(_.refusal)

  /** @throws UnsupportedRelease where there is such a reason */
  def require(on: AnyRef): Unit = refusal(on).foreach(why => throw new UnsupportedRelease(why))

  private[tables] def isBefore(version: String, oldest: String): Boolean = {
    val pairs = numbers(version).zipAll(numbers(oldest), 0, 0)
    pairs.find { case (found, needed) => found != needed }.exists { case (found, needed) => found < needed }
  }

  private def numbers(version: String): Seq[Int] =
    version.split("[.-]").toSeq.map(part => Try(part.toInt)).takeWhile(_.isSuccess).map(_.get)
}

/** This release of a table format cannot be used: `reason` says which one is needed. */
final class UnsupportedRelease(override val reason: Reason)
  extends RuntimeException(reason.sentence)
  with ReasonedFailure

object UnsupportedRelease {

  /** The error about a missing member that a release should have. */
  def apply(release: Option[Release], member: String): UnsupportedRelease =
    new UnsupportedRelease(release.fold(Reason(
      ReasonCode.Failed,
      "error" -> s"there is no $member"))(_.lacks(member)))
}
