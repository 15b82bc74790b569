package org.metastore.spark.reason

import org.apache.commons.codec.binary.Hex

/**
 * Binary values as SQL reads and writes them: `X'00FF80'`. Python's `metastore.format.binary_text` does the
 * same.
 */
object BinaryText {
  private val Literal = "[Xx]'([0-9A-Fa-f]*)'".r

  /** A binary value as SQL writes it. */
  def render(bytes: Array[Byte]): String = s"X'${Hex.encodeHexString(bytes, false)}'"

  /** The bytes of a binary value as SQL writes it; `None` of any other text. */
  def parse(text: String): Option[Array[Byte]] =
    for (Literal(digits) <- Some(text)) yield Hex.decodeHex(fillByte(digits))

  /** Digits that are as many as bytes need: SQL reads `X'F'` as `X'0F'`. */
  private def fillByte(digits: String): String = {
    val missing = digits.length % 2
    "0" * missing + digits
  }
}
