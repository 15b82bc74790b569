"""A table's statistics as one HTML page for people: it needs no server, no network and no other file.

Every number comes from answers that the reading verbs give (`contents`); here they are made into what a page shows of a
column (`cards`), drawn (`charts`), judged (`alerts`) and written (`page`, with `page.html`, `page.css` and `page.js`).
"""
