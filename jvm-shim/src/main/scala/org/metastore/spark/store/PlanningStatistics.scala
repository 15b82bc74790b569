package org.metastore.spark.store

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.spark.sql.types.DataType

import org.metastore.spark.explain.Reason

/** Statistics of one manifest for the planning of one query. */
private[store] final class PlanningStatistics(
    reader: BlockReader, values: ValueReader, places: PlacesReader, override val manifest: Manifest, budget: Budget) extends TableStatistics {

  override def fingerprint: String = manifest.fingerprint

  override lazy val distinct: Either[Reason, Map[String, TableDistinct]] = {
    val found = for (snapshot <- manifest.latest; ref <- snapshot.summary) yield {
      PlanningPool.run(Seq(() => reader.tableDistinct(ref)), budget).head.map { counts =>
        counts.filter { case (column, _) => snapshot.columns.indices.contains(column) }
          .map { case (column, count) => snapshot.columns(column).key -> count }
      }
    }
    found.getOrElse(Right(Map.empty))
  }

  override def of(files: FileList, wanted: Seq[(String, DataType)]): FileStatistics = {
    val columns = new ColumnLoader[BlockColumn](budget, reader, reader.cached, reader.readColumns)
    val joined = files.joined(fingerprint).getOrElse {
      val joining = join(files)
      // Of other blocks only few of the files may be known, if any: they are read once that is certain.
      columns.load(manifest.blocks.filter(_.files.rows <= 2L * files.length), wanted)
      val known = joining().remembered
      if (known.failure.isEmpty) files.keep(known)
      known
    }
    val distributions = new Distributions(reader, places, manifest, joined, files, budget)
    new PlanningFiles(reader, values, distributions, files, joined, columns, budget)
  }

  /** Begins to look for the files in the blocks, the least preferred first. */
  private def join(files: FileList): () => JoinedFiles = {
    val ordered = manifest.blocks.filter(_.computed != "full") ++ manifest.blocks.filter(_.computed == "full")
    val reads = PlanningPool.start(
      ordered.map(block => () => {
        val known = reader.files(block)
        val found = new JoinedBlock(block, known.rows, known.join(files))
        if (found.matches > 0) budget.hold(known.weight + files.length * 4L)
        Some(found).filter(_.matches > 0)
      }), budget)
    () => {
      val read = reads()
      val blocks = read.collect { case Right(Some(block)) => block }
      val failure = read.collectFirst { case Left(reason) => reason }
      new JoinedFiles(fingerprint, files.length, blocks.toIndexedSeq, failure)
    }
  }
}

private[store] final class PlanningFiles(
    reader: BlockReader, values: ValueReader, distributions: Distributions, override val files: FileList,
    joined: JoinedFiles, columns: ColumnLoader[BlockColumn], budget: Budget) extends FileStatistics {
  private type Column = (String, DataType)

  private val columnSizes = new ColumnLoader[BlockSizes](budget, reader, reader.cachedSizes, reader.readSizes)
  private val zones = new ConcurrentHashMap[Column, Either[Reason, ColumnZones]]()

  override def fingerprint: String = joined.fingerprint
  override def rows: Array[Long] = joined.rows
  override def known(file: Int): Boolean = joined.known(file)
  override def knownFiles: Int = joined.knownFiles

  override def load(wanted: Seq[Column]): Unit = {
    val missing = wanted.distinct.filterNot(column => zones.containsKey(column) || isAligned(column))
    columns.load(joined.blocks.map(_.block), missing)
    val parts = missing.map(column => column -> columns.parts(joined.blocks, column))
    parts.foreach { case (column, why) =>
      why.left.foreach(reason => zones.put(column, Left(joined.failure.getOrElse(reason))))
    }
    val found = parts.collect { case (column, Right(all)) => column -> all }
    val assemblies = found.map { case ((key, dataType), all) => () => new ZoneAssembler(key, dataType, files.length).assemble(all) }
    // Other threads take longer to begin than a few thousand values to be copied.
    val inPool = found.size > 1 && found.size.toLong * files.length > PlanningFiles.Few
    val assembled = if (inPool) PlanningPool.run(assemblies, budget) else PlanningPool.here(assemblies, budget)
    found.zip(assembled).foreach { case ((column, _), aligned) =>
      zones.put(column, aligned)
      if (columns.complete(joined.blocks, column)) aligned.foreach(joined.keep(column, _))
    }
  }

  private def isAligned(column: Column): Boolean = {
    val found = joined.kept[ColumnZones](column)
    found.foreach(aligned => zones.put(column, Right(aligned)))
    found.isDefined
  }

  override def column(key: String, dataType: DataType): Either[Reason, ColumnZones] = {
    val column = (key, dataType)
    if (!zones.containsKey(column)) load(Seq(column))
    zones.get(column)
  }

  override def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] = {
    val column = (key, dataType)
    joined.kept[ColumnSizes](column).map(Right(_)).getOrElse {
      columnSizes.load(joined.blocks.map(_.block), Seq(column))
      columnSizes.parts(joined.blocks, column).map { parts =>
        val sizes = ColumnSizes.assemble(parts, files.length)
        if (columnSizes.complete(joined.blocks, column)) joined.keep(column, sizes)
        sizes
      }
    }
  }

  override def values(key: String, dataType: DataType, among: Array[Int], filters: Boolean): ColumnValues =
    try {
      def listed(open: Array[Int]): ColumnValues =
        if (open.isEmpty) ColumnValues.Unknown
        else new FoundValues(dataType, new ValueLoader(values, joined.blocks, budget).load(key, dataType, open, filters))
      placedOf(key, dataType, among).fold(listed(among))(new PlacedValues(_, among, listed(_)))
    } catch {
      case NonFatal(e) =>
        PlanningPool.explained(e, budget)
        ColumnValues.Unknown
    }

  override def frequencies(key: String, dataType: DataType, value: Any, among: Array[Int]): Array[Long] = {
    val zones = column(key, dataType).toOption
    def counted(counts: ColumnZones => Array[Long]): Array[Long] =
      among.map(i => zones.filter(_.known(i)).fold(-1L)(counts(_)(i)))
    value match {
      case null => counted(_.nulls)
      case number: Double if number.isNaN => counted(_.nans)
      case number: Float if number.isNaN => counted(_.nans)
      case _ => frequencies(key, dataType, StoredValue.point(value, dataType), among)
    }
  }

  private def frequencies(key: String, dataType: DataType, point: Points, among: Array[Int]): Array[Long] = {
    val found = placedOf(key, dataType, among)
      .flatMap(placed => placed.rows(point).map(rows => among.map(file => if (placed.tells(file)) rows(file) else -1L)))
      .getOrElse(Filled.longs(among.length, -1))
    val open = among.indices.filter(found(_) < 0).toArray
    val listed = new FrequencyLoader(values, joined.blocks, budget).load(key, dataType, point, open.map(among(_)))
    open.indices.foreach(i => found(open(i)) = listed(i))
    found
  }

  private def placedOf(key: String, dataType: DataType, among: Array[Int]): Option[PlacedFiles] =
    column(key, dataType).toOption.flatMap(distributions.of(key, dataType, among, _))

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

private object PlanningFiles {
  private val Few = 20000L
}
