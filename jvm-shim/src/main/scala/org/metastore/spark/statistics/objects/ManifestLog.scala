package org.metastore.spark.statistics.objects

import org.slf4j.LoggerFactory

import org.metastore.spark.contract.Contract
import org.metastore.spark.reason.DamagedObjectException
import org.metastore.spark.statistics.cache.StatisticsCache

/** Finds and reads the newest manifest below `log/`. */
private[statistics] final class ManifestLog(folder: StoreFolder) {
  import ManifestLog._

  /** The newest undamaged manifest, or `None`. */
  def newest(): Option[Manifest] = firstWhole(listManifests().toList, None)

  private def firstWhole(
      candidates: List[StoreFile],
      damage: Option[DamagedObjectException]): Option[Manifest] =
    candidates match {
      case Nil => damage.map(throw _)
      case file :: older =>
        try Some(cached(file))
        catch {
          case e: DamagedObjectException =>
            log.warn("{} The one before it is used.", e.getMessage)
            firstWhole(older, damage.orElse(Some(e)))
        }
    }

  private def cached(file: StoreFile): Manifest = {
    val key = s"${file.path}:${file.modified}:${file.length}"
    StatisticsCache.getOrLoad[Manifest](key, _ => file.length * 4)(read(file))
  }

  /**
   * All manifests, the newest first. A number that is too far ahead of the one before is none of the log's.
   */
  private def listManifests(): Seq[StoreFile] = {
    val all =
      folder.files().filter(file => Name.matcher(file.name).matches && numberOf(file) > 0).sortBy(numberOf)
    val before = BigInt(0) +: all.map(numberOf)
    all.zip(before).takeWhile { case (file, last) => numberOf(file) - last <= Farthest }.map(_._1).reverse
  }

  private def read(file: StoreFile): Manifest = {
    val name = s"manifest ${file.name}"
    if (file.length > ManifestReader.MaxBytes)
      throw new DamagedObjectException(name, s"it has ${file.length} bytes")
    val bytes = new Array[Byte](file.length.toInt)
    val open = folder.open(file.name, file.length)
    try open.readFully(0, bytes)
    finally open.close()
    ManifestReader.read(name, bytes)
  }
}

private object ManifestLog {
  private val Name = java.util.regex.Pattern.compile("\\d{20}\\.json")

  /**
   * The most by which a manifest's number may be ahead of the one before it. Python's `commit_log` has the
   * same bound.
   */
  private val Farthest = BigInt(Contract.limit("manifests_ahead"))

  private def numberOf(file: StoreFile): BigInt = BigInt(file.name.stripSuffix(".json"))

  private val log = LoggerFactory.getLogger("org.metastore.spark.statistics")
}
