package org.metastore.spark.store

import org.apache.parquet.column.{Encoding => ParquetEncoding}
import org.apache.parquet.format.{Encoding => StoredEncoding}
import org.apache.parquet.format.converter.ParquetMetadataConverter

/**
 * What the header of a data page says.
 *
 * @param size       bytes of the page when decompressed, levels included
 * @param compressed bytes of the page as stored, levels included
 * @param values     nulls included
 * @param levels     encoding of the definition levels; version 2 has only one
 * @param repeats    bytes of the repetition levels, in version 2; `defines`: of the definition levels
 * @param isPacked   whether the values of version 2 are compressed
 */
private[store] final case class PageHead(
    isSecond: Boolean, size: Int, compressed: Int, values: Int, encoding: ParquetEncoding, levels: ParquetEncoding, repeats: Int,
    defines: Int, isPacked: Boolean)

private[store] object PageHead {
  private val DataPage = 0
  private val DataPageV2 = 3
  private val True = 1
  private val converter = new ParquetMetadataConverter()

  /** Reads a header. Other pages than data pages are refused: the format has no dictionaries. */
  def read(thrift: CompactThrift): PageHead = {
    var (kind, size, compressed) = (-1, -1, -1)
    var data = Option.empty[DataHead]
    thrift.struct {
      case (1, _) => kind = thrift.int()
      case (2, _) => size = thrift.int()
      case (3, _) => compressed = thrift.int()
      case (5, _) => data = Some(first(thrift))
      case (8, _) => data = Some(second(thrift))
      case (_, other) => thrift.skip(other)
    }
    val head = data.filter(_.kind == kind).getOrElse(throw new IllegalArgumentException(s"it has a page of type $kind among its data"))
    if (size < 0 || compressed < 0 || head.values <= 0)
      throw new IllegalArgumentException(s"it has a page of ${head.values} values in $compressed bytes, $size when decompressed")
    PageHead(
      kind == DataPageV2, size, compressed, head.values, encoding(head.encoding), encoding(head.levels), head.repeats, head.defines,
      head.isPacked)
  }

  private final case class DataHead(
      kind: Int, values: Int, encoding: Int, levels: Int, repeats: Int = 0, defines: Int = 0, isPacked: Boolean = true)

  private def first(thrift: CompactThrift): DataHead = {
    var (values, encoding, levels) = (-1, -1, -1)
    thrift.struct {
      case (1, _) => values = thrift.int()
      case (2, _) => encoding = thrift.int()
      case (3, _) => levels = thrift.int()
      case (_, other) => thrift.skip(other)
    }
    DataHead(DataPage, values, encoding, levels)
  }

  private def second(thrift: CompactThrift): DataHead = {
    var (values, encoding, repeats, defines, isPacked) = (-1, -1, 0, 0, true)
    thrift.struct {
      case (1, _) => values = thrift.int()
      case (4, _) => encoding = thrift.int()
      case (5, _) => defines = thrift.int()
      case (6, _) => repeats = thrift.int()
      case (7, truth) => isPacked = truth == True
      case (_, other) => thrift.skip(other)
    }
    DataHead(DataPageV2, values, encoding, StoredEncoding.RLE.getValue, repeats, defines, isPacked)
  }

  private def encoding(number: Int): ParquetEncoding =
    Option(StoredEncoding.findByValue(number)).map(converter.getEncoding(_))
      .getOrElse(throw new IllegalArgumentException(s"it has the encoding $number"))
}
