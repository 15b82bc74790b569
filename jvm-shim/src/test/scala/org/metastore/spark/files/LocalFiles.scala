package org.metastore.spark.files

import java.net.URI
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{
  ChecksumFs, DelegateToFileSystem, FileStatus, FsConstants, LocalFileSystem, Path, RawLocalFileSystem
}
import org.apache.hadoop.fs.permission.FsPermission

/**
 * Hadoop's local files, of which the JVM sets permissions itself. Without its native library Hadoop starts `chmod` twice for
 * each file that is written, and `readlink` for each that is renamed: of the tests, a process every tenth of a second.
 */
class LocalFiles extends LocalFileSystem(new RawLocalFiles)

/** The same for who asks by a FileContext: `fs.AbstractFileSystem.file.impl`. */
class LocalFileContext(uri: URI, conf: Configuration) extends ChecksumFs(new RawLocalFileContext(conf))

private class RawLocalFiles extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val actions = Seq(permission.getUserAction, permission.getGroupAction, permission.getOtherAction)
    Files.setPosixFilePermissions(
      pathToFile(path).toPath,
      PosixFilePermissions.fromString(actions.map(_.SYMBOL).mkString))
    ()
  }

  /** No link is asked about. */
  override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)
}

private class RawLocalFileContext(conf: Configuration)
  extends DelegateToFileSystem(
    FsConstants.LOCAL_FS_URI,
    new RawLocalFiles,
    conf,
    FsConstants.LOCAL_FS_URI.getScheme,
    false) {

  override def getUriDefaultPort: Int = -1
}
