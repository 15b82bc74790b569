"""Queries over four data files that are sorted by all columns but `v`, and the files that the first scan reads."""

SORTED = {
    "SELECT * FROM {t} WHERE id BETWEEN 120 AND 130": 1,
    "SELECT * FROM {t} WHERE s = 's00250'": 1,
    "SELECT * FROM {t} WHERE x > 90": 1,
    "SELECT * FROM {t} WHERE st.a IN (5, 305)": 2,
    "SELECT count(*), max(v) FROM {t} WHERE day = DATE '2024-01-02'": 1,
    "SELECT * FROM {t} WHERE ID < 100 OR id >= 300": 2,
    "SELECT * FROM {t} WHERE id < -1": 0,
    "SELECT * FROM {t} WHERE id IN (SELECT 7) AND id < 50": 1,
    "SELECT * FROM {t} WHERE id = (SELECT max(id) FROM {t} WHERE id < 150) AND id > 100": None,
    "SELECT id FROM {t} WHERE id < 10 UNION ALL SELECT id FROM {t} WHERE id > 390": None,
    "WITH few AS (SELECT * FROM {t} WHERE id < 20) SELECT a.id FROM few a JOIN few b ON a.id = b.id": None,
    "SELECT id FROM {t} WHERE id > 350 ORDER BY id LIMIT 5": None,
}
