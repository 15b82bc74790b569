package org.metastore.spark.store

import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory

/** Finds and reads the newest manifest below `log/`. */
private[store] final class ManifestLog(folder: StoreFolder) {
  import ManifestLog._

  /**
   * The newest manifest that is whole; `None` where there is none. One that was read before is not read again while it stays
   * the newest.
   *
   * @throws DamagedObjectException if there are manifests and none is whole
   */
  def newest(): Option[Manifest] = {
    val found = listManifests()
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

  /** All manifests, the newest first. A number beyond all that a log can have come to is none of it. */
  private def listManifests(): Seq[FileStatus] = {
    val found = folder.files().filter(file => Name.matcher(file.getPath.getName).matches && numberOf(file) > 0).sortBy(numberOf)
    val before = BigInt(0) +: found.map(numberOf)
    found.zip(before).takeWhile { case (file, last) => numberOf(file) - last <= Farthest }.map(_._1).reverse
  }

  /** Manifests of higher numbers, the newest first: a listing may lag behind on some storages. */
  private def beyond(status: FileStatus): Seq[FileStatus] = {
    val next = f"${(numberOf(status) + 1).bigInteger}%020d.json"
    folder.file(next).fold(Seq.empty[FileStatus])(found => beyond(found) :+ found)
  }

  private def read(status: FileStatus): Manifest = {
    val name = s"manifest ${status.getPath.getName}"
    if (status.getLen > ManifestReader.MaxBytes) throw new DamagedObjectException(name, s"it has ${status.getLen} bytes")
    val bytes = new Array[Byte](status.getLen.toInt)
    val stream = folder.open(status.getPath.getName, status.getLen)
    try stream.readFully(0, bytes)
    finally stream.close()
    ManifestReader.read(name, bytes)
  }
}

private object ManifestLog {
  private val Name = java.util.regex.Pattern.compile("\\d{20}\\.json")

  /** As in Python's `protocol`: how far a manifest's number may be ahead of the one before it. */
  private val Farthest = BigInt(10).pow(12)

  private def numberOf(file: FileStatus): BigInt = BigInt(file.getPath.getName.stripSuffix(".json"))

  private val log = LoggerFactory.getLogger("org.metastore.spark.store")
}
