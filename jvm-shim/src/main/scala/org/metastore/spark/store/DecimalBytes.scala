package org.metastore.spark.store

/** Decimals of more than 18 digits: 16 bytes big-endian two's complement, here with the sign bit flipped for unsigned order. */
object DecimalBytes {
  private val Length = 16

  /** Flips the sign bit; null stays null, another length is unknown. */
  def ordered(bytes: Array[Byte]): Array[Byte] =
    if (bytes == null || bytes.length != Length) null
    else {
      val flipped = bytes.clone()
      flipped(0) = (flipped(0) ^ 0x80).toByte
      flipped
    }

  /** The ordered bytes of an unscaled value. */
  def of(unscaled: java.math.BigInteger): Array[Byte] = {
    val bytes = unscaled.toByteArray
    val out = Array.fill[Byte](Length)(if (unscaled.signum < 0) -1 else 0)
    System.arraycopy(bytes, 0, out, Length - bytes.length, bytes.length)
    ordered(out)
  }

  /** The unscaled value of ordered bytes. */
  def unscaled(bytes: Array[Byte]): java.math.BigInteger = new java.math.BigInteger(ordered(bytes))
}
