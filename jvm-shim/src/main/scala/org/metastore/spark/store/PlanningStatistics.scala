package org.metastore.spark.store

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** Statistics of one manifest for the planning of one query. */
private[store] final class PlanningStatistics(reader: BlockReader, override val manifest: Manifest, budget: Budget)
  extends TableStatistics {

  override def fingerprint: String = manifest.fingerprint

  override def of(files: FileList): FileStatistics = {
    val joined = files.joined(fingerprint).getOrElse {
      val (blocks, complete) = join(files)
      val fresh = new JoinedFiles(fingerprint, files.length, blocks)
      if (complete) files.keep(fresh)
      fresh
    }
    new PlanningFiles(reader, files, joined, budget)
  }

  /** The blocks that know some file of the list, the least preferred first, and whether all could be read. */
  private def join(files: FileList): (IndexedSeq[JoinedBlock], Boolean) = {
    val ordered = manifest.blocks.filter(_.computed != "full") ++ manifest.blocks.filter(_.computed == "full")
    val read = PlanningPool.run(
      ordered.map(block => () => {
        val known = reader.files(block)
        new JoinedBlock(block, known.rows, known.join(files))
      }), budget)
    (read.collect { case Right(block) if block.matches > 0 => block }.toIndexedSeq, read.forall(_.isRight))
  }
}

/** A block joined with a list of files: `ordinals(i)` is the block's ordinal of the list's file i, or -1. */
private[store] final class JoinedBlock(val block: Block, val rows: Array[Long], val ordinals: Array[Int]) {
  val matches: Int = {
    var found = 0
    var i = 0
    while (i < ordinals.length) {
      if (ordinals(i) >= 0) found += 1
      i += 1
    }
    found
  }

  /** The column of that key, with its ordinal in the block. */
  def columns(key: String): Seq[(ColumnEntry, Int)] = byKey.getOrElse(key, Nil)

  private lazy val byKey = block.columns.zipWithIndex.groupBy(_._1.key)
}

/** All blocks of one version joined with a list of files, and the columns that were aligned with it so far. */
private[store] final class JoinedFiles(val fingerprint: String, length: Int, val blocks: IndexedSeq[JoinedBlock]) {
  val zones = new ConcurrentHashMap[(String, DataType), ColumnZones]()
  val sizes = new ConcurrentHashMap[(String, DataType), ColumnSizes]()

  val rows: Array[Long] = Array.fill(length)(-1L)
  val known: Array[Boolean] = new Array[Boolean](length)
  blocks.foreach { block =>
    var i = 0
    while (i < length) {
      val file = block.ordinals(i)
      if (file >= 0) {
        known(i) = true
        if (block.rows(file) >= 0) rows(i) = block.rows(file)
      }
      i += 1
    }
  }
  val knownFiles: Int = known.count(identity)
}

private[store] final class PlanningFiles(
    reader: BlockReader, override val files: FileList, joined: JoinedFiles, budget: Budget) extends FileStatistics {
  private val failures = new ConcurrentHashMap[(String, DataType), Reason]()

  override def fingerprint: String = joined.fingerprint
  override def rows: Array[Long] = joined.rows
  override def known(file: Int): Boolean = joined.known(file)
  override def knownFiles: Int = joined.knownFiles

  override def load(columns: Seq[(String, DataType)]): Unit = {
    val missing = columns.distinct.filterNot(c => joined.zones.containsKey(c) || failures.containsKey(c))
    val loader = new ColumnLoader[BlockColumn](joined, budget, reader, reader.cached, reader.readColumns)
    loader.load(missing).foreach {
      case (column, Right(parts)) =>
        val zones = new ZoneAssembler(column._1, column._2, files.length).assemble(parts)
        if (loader.complete(column)) joined.zones.put(column, zones) else partial.put(column, zones)
      case (column, Left(reason)) => failures.put(column, reason)
    }
  }

  private val partial = new ConcurrentHashMap[(String, DataType), ColumnZones]()

  override def column(key: String, dataType: DataType): Either[Reason, ColumnZones] = {
    val column = (key, dataType)
    if (!joined.zones.containsKey(column) && !partial.containsKey(column)) load(Seq(column))
    Option(joined.zones.get(column)).orElse(Option(partial.get(column))).toRight(failures.get(column))
  }

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] = {
    val column = (key, dataType)
    Option(joined.sizes.get(column)).map(Right(_)).getOrElse {
      val loader = new ColumnLoader[BlockSizes](
        joined, budget, reader, reader.cachedSizes, (_, ref, group, files) => reader.readSizes(ref, group, files))
      loader.load(Seq(column)).head._2.map { parts =>
        val sizes = ColumnSizes.assemble(parts, files.length)
        if (loader.complete(column)) joined.sizes.put(column, sizes)
        sizes
      }
    }
  }

  override def zone(key: String, dataType: DataType, file: Int): Option[ColumnZone] =
    column(key, dataType).toOption.filter(_.known(file)).map { zones =>
      val sizes = this.sizes(key, dataType).toOption
      ColumnZone(
        zones.rows(file), Some(zones.nulls(file)).filter(_ >= 0), Some(zones.nans(file)).filter(_ >= 0),
        StoredValue.lo(zones, file), StoredValue.hi(zones, file), zones.bounds.loExact(file), zones.bounds.hiExact(file),
        sizes.map(_.distinct(file)).filter(_ >= 0), sizes.map(_.avgLen(file)).filterNot(_.isNaN),
        sizes.map(_.maxLen(file)).filter(_ >= 0))
    }
}
