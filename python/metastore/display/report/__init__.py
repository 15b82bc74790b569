"""A table's statistics as one HTML page for people: it needs no server, no network and no other file.

`contents` collects the answers that hold its numbers. `alerts` finds what deserves attention, `charts` draws
histograms, `cards` makes a card of each column, and `page` writes them into `page.html`, with `page.css` and `page.js`.
"""
