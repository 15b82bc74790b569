package org.metastore.spark.statistics.objects

import java.security.MessageDigest

private[statistics] object Sha256 {

  def digest(bytes: Array[Byte], offset: Int, length: Int): Array[Byte] = {
    val digest = MessageDigest.getInstance("SHA-256")
    digest.update(bytes, offset, length)
    digest.digest()
  }
}
