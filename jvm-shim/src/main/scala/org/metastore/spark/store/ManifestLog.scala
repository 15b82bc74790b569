package org.metastore.spark.store

import java.io.FileNotFoundException

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

/** Finds and reads the newest manifest below `log/`. */
private[store] final class ManifestLog(fs: FileSystem, log: Path) {
  import ManifestLog._

  /** The newest manifest; `None` where there is none. A manifest read before is not read again while it stays the newest. */
  def newest(): Option[Manifest] = listed().map { found =>
    val status = beyond(found)
    val key = s"${status.getPath}:${status.getModificationTime}:${status.getLen}"
    StatisticsCache.getOrLoad(key, ManifestWeight)(read(status))
  }

  private def listed(): Option[FileStatus] = {
    val entries =
      try fs.listStatus(log)
      catch { case _: FileNotFoundException => Array.empty[FileStatus] }
    entries.filter(entry => Name.matcher(entry.getPath.getName).matches).sortBy(_.getPath.getName).lastOption
  }

  /** Follows the numbers upwards: a listing may lag behind on some storages. */
  private def beyond(status: FileStatus): FileStatus = {
    val number = status.getPath.getName.stripSuffix(".json").toLong
    val next = new Path(log, f"${number + 1}%020d.json")
    try beyond(fs.getFileStatus(next))
    catch { case _: FileNotFoundException => status }
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
  private val ManifestWeight = (_: Manifest) => ManifestReader.MaxBytes.toLong / 8
}
