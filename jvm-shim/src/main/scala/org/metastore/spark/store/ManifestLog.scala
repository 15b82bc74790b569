package org.metastore.spark.store

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.slf4j.LoggerFactory

/** Finds and reads the newest manifest below `log/`. */
private[store] final class ManifestLog(fs: FileSystem, folder: Path) {
  import ManifestLog._

  /**
   * The newest manifest that is whole; `None` where there is none. One that was read before is not read again while it stays
   * the newest.
   *
   * @throws DamagedObjectException if there are manifests and none is whole
   */
  def newest(): Option[Manifest] = {
    val found = listed()
    val later = found.headOption.map(beyond).getOrElse(Nil)
    firstWhole((later ++ found).toList, None)
  }

  private def firstWhole(candidates: List[FileStatus], damage: Option[DamagedObjectException]): Option[Manifest] =
    candidates match {
      case Nil => damage.map(throw _)
      case status :: older =>
        try Some(cached(status))
        catch {
          case e: DamagedObjectException =>
            log.warn("{} The one before it is used.", e.getMessage)
            firstWhole(older, damage.orElse(Some(e)))
        }
    }

  private def cached(status: FileStatus): Manifest = {
    val key = s"${status.getPath}:${status.getModificationTime}:${status.getLen}"
    StatisticsCache.getOrLoad[Manifest](key, _ => status.getLen * 4)(read(status))
  }

  /** All manifests, the newest first. */
  private def listed(): Seq[FileStatus] = {
    val entries =
      try fs.listStatus(folder)
      catch { case _: FileNotFoundException => Array.empty[FileStatus] }
    entries.filter(entry => Name.matcher(entry.getPath.getName).matches).sortBy(_.getPath.getName).reverse.toSeq
  }

  /** Manifests of higher numbers, the newest first: a listing may lag behind on some storages. */
  private def beyond(status: FileStatus): Seq[FileStatus] = {
    val number = status.getPath.getName.stripSuffix(".json").toLong
    val next = new Path(folder, f"${number + 1}%020d.json")
    try {
      val found = fs.getFileStatus(next)
      beyond(found) :+ found
    } catch { case _: FileNotFoundException => Nil }
  }

  private def read(status: FileStatus): Manifest = {
    val name = s"manifest ${status.getPath.getName}"
    if (status.getLen > ManifestReader.MaxBytes) throw new DamagedObjectException(name, s"it has ${status.getLen} bytes")
    val bytes = new Array[Byte](status.getLen.toInt)
    val stream = fs.open(status.getPath)
    try stream.readFully(0, bytes)
    finally stream.close()
    ManifestReader.read(name, bytes)
  }
}

private object ManifestLog {
  private val Name = java.util.regex.Pattern.compile("\\d{20}\\.json")
  private val log = LoggerFactory.getLogger("org.metastore.spark.store")
}
