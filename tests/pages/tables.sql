CREATE OR REPLACE TABLE t (id BIGINT, `column` INT, price DOUBLE, customer INT, name STRING, a INT, b INT, day DATE)
  USING iceberg PARTITIONED BY (day);
INSERT INTO t SELECT id, id % 50, id / 4, id % 7, CAST(id AS STRING), id, -id, DATE '2026-03-01' FROM range(100);
CREATE OR REPLACE TABLE orders (o_orderkey BIGINT, o_custkey BIGINT) USING iceberg;
INSERT INTO orders SELECT id, 4700 + id FROM range(100);
CREATE OR REPLACE TABLE orders_2024 (o_orderkey BIGINT, o_custkey BIGINT) USING iceberg;
INSERT INTO orders_2024 SELECT id, id FROM range(100);
CREATE OR REPLACE TABLE sales (customer INT) USING iceberg;
INSERT INTO sales VALUES (7), (8);
CREATE OR REPLACE TABLE a (k INT, v INT) USING iceberg;
INSERT INTO a VALUES (1, 2), (3, 40);
CREATE OR REPLACE TABLE b (k INT) USING iceberg;
INSERT INTO b VALUES (1), (3);
CREATE OR REPLACE TABLE points (lon DOUBLE, lat DOUBLE, name STRING) USING iceberg;
INSERT INTO points VALUES (13.4, 52.5, 'Berlin'), (13.7, 51.1, 'Dresden');
