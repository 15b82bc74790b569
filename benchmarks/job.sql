-- The tables of the Join Order Benchmark for DuckDB: no IMDB, but as skewed and as correlated; scale 1 has a tenth of
-- its movies, persons and companies. `tpc_data.py` sets the variables: the scale, and what queries look for.
--
-- All is a function of ranks by hash. The first movies, persons, companies and keywords are the popular ones, in every
-- table; among them are those that queries look for by name. Four popular movies at a time are sequels and share kind,
-- studio and genre. The kind decides on the year, the studio on country, companies, languages and releases, the genre
-- on title, keywords and voices; a role on gender and note. Columns that no query reads are NULL.

CREATE MACRO movies_n() AS (250000 * getvariable('scale'))::BIGINT;
CREATE MACRO persons_n() AS (400000 * getvariable('scale'))::BIGINT;
CREATE MACRO characters_n() AS (300000 * getvariable('scale'))::BIGINT;
CREATE MACRO companies_n() AS (24000 * getvariable('scale'))::BIGINT;
CREATE MACRO keywords_n() AS (13400 * getvariable('scale'))::BIGINT;
CREATE MACRO u(salt, a, b := 0) AS (hash(hash(a, b, salt)) >> 11) / 9007199254740992; -- uniform from 0 to 1
CREATE MACRO pick(list, x) AS list[1 + floor(len(list) * x)::INT];
CREATE MACRO scatter(rank, n) AS 1 + (rank::BIGINT * 7368787) % n; -- identifiers are in no order of popularity
CREATE MACRO times(salt, r, n, mean, s) AS -- of a Zipf-like distribution: how often the one of rank r occurs
    floor(mean * (1 - s) * pow(n / (r + n / 5000), s) * (0.2 + 1.6 * u(salt, r)) + u(salt, r, 1))::INT;
CREATE MACRO syllable(salt, r, i) AS pick(['an', 'be', 'co', 'de', 'el', 'fu', 'ga', 'hi', 'il', 'jo', 'ka', 'lu', 'ma',
    'ne', 'or', 'pi', 'qua', 'ro', 'sa', 'ti', 'um', 'vi', 'wo', 'xa', 'yo', 'ze', 'ber', 'gel', 'ni', 'tra', 'yu',
    'chi'], u(salt, r, i));
CREATE MACRO word(salt, r) AS upper(syllable(salt, r, 2)[1]) || syllable(salt, r, 2)[2:] || syllable(salt, r, 3)
    || syllable(salt, r, 4);
CREATE MACRO named(literals, often, salt, r) AS CASE
    WHEN u(salt, r, 5) < often THEN pick(literals, u(salt, r, 6)) || pick(['', '', ' ' || word(salt, r)], u(salt, r, 7))
    ELSE word(salt, r) || pick([' ', ', ', ' the '], u(salt, r, 8)) || word(salt || 2, r) END;
CREATE MACRO genre(x) AS pick(['Drama', 'Comedy', 'Animation', 'Family', 'Horror', 'Thriller', 'Action', 'Crime',
    'Sci-Fi', 'War', 'Western', 'Short', 'Documentary', 'Romance'], x);
CREATE MACRO country(x) AS pick(list_concat(list_resize([]::TEXT[], 16, 'USA'), ['UK', 'UK', 'UK', 'UK',
    'Germany', 'Germany', 'Germany', 'France', 'France', 'France', 'Japan', 'Japan', 'Japan', 'India', 'Italy',
    'Canada', 'Spain', 'Sweden', 'Denmark', 'Norway', 'Netherlands', 'Russia', 'Poland', 'Bulgaria']), x);
CREATE MACRO language(country) AS coalesce(MAP {'Germany': 'German', 'France': 'French', 'Japan': 'Japanese',
    'India': 'Hindi', 'Italy': 'Italian', 'Spain': 'Spanish', 'Sweden': 'Swedish', 'Denmark': 'Danish',
    'Norway': 'Norwegian', 'Netherlands': 'Dutch', 'Russia': 'Russian', 'Poland': 'Polish', 'Bulgaria': 'Bulgarian'
    }[country], 'English');
CREATE MACRO code(country) AS coalesce(MAP {'USA': '[us]', 'UK': '[gb]', 'Germany': '[de]', 'Japan': '[jp]',
    'Spain': '[es]', 'Sweden': '[se]', 'Denmark': '[dk]', 'Netherlands': '[nl]', 'Poland': '[pl]', 'Bulgaria': '[bg]'}
    [country], '[' || lower(country[:2]) || ']');

INSERT INTO kind_type SELECT unnest(range(1, 8)), unnest(['movie', 'tv series', 'tv movie', 'video movie',
    'tv mini series', 'video game', 'episode']);
INSERT INTO company_type SELECT unnest(range(1, 5)), unnest(['distributors', 'production companies',
    'special effects companies', 'miscellaneous companies']);
INSERT INTO comp_cast_type SELECT unnest(range(1, 5)), unnest(['cast', 'crew', 'complete', 'complete+verified']);
INSERT INTO role_type SELECT unnest(range(1, 13)), unnest(['actor', 'actress', 'producer', 'writer', 'cinematographer',
    'composer', 'costume designer', 'director', 'editor', 'miscellaneous crew', 'production designer', 'guest']);
INSERT INTO link_type SELECT unnest(range(1, 19)), unnest(['follows', 'followed by', 'remake of', 'remade as',
    'references', 'referenced in', 'spoofs', 'spoofed in', 'features', 'featured in', 'spin off from', 'spin off',
    'version of', 'similar to', 'edited into', 'edited from', 'alternate language version of', 'unknown link']);
INSERT INTO info_type SELECT range, coalesce(MAP {1: 'runtimes', 2: 'color info', 3: 'genres', 4: 'languages',
    5: 'certificates', 8: 'countries', 13: 'goofs', 15: 'quotes', 16: 'release dates', 17: 'trivia', 18: 'locations',
    19: 'mini biography', 21: 'birth date', 22: 'height', 98: 'plot', 99: 'votes distribution', 100: 'votes',
    101: 'rating', 105: 'budget', 107: 'gross', 112: 'top 250 rank', 113: 'bottom 10 rank'}[range], 'info ' || range)
    FROM range(1, 114);

CREATE TABLE movies AS SELECT *, scatter(r, n) AS id, floor(40 * studio) AS slot, country(studio) AS country,
    floor(14 * genre) AS g,
    CASE WHEN u('dated', r) > 0.03 THEN 2013 + pick([0, 0, 0, 0, 0, 0, 0, 1, 2, 3], u('later', r))
        - floor(CASE kind WHEN 7 THEN 40 WHEN 6 THEN 25 ELSE 110 END
        * u('year', r) ** CASE WHEN r < n / 50 THEN 3 ELSE 2 END) END::INT AS year
    FROM (SELECT *, u('studio', series) AS studio, u('genre', series) ** 1.5 AS genre,
        pick(CASE WHEN r < n / 5 THEN [1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 7]
            ELSE [1, 1, 7, 7, 7, 7, 7, 7, 3, 4] END, u('kind', series)) AS kind
        FROM (SELECT range AS r, movies_n() AS n, CASE WHEN r < n / 50 THEN -1 - r // 4 ELSE r END AS series
            FROM range(movies_n())));
INSERT INTO title BY NAME SELECT id, kind AS kind_id, year AS production_year,
    named([pick(getvariable('titles'), (g + 1.7 * u('title', series)) / 15)],
        CASE WHEN r < n / 50 THEN 0.5 ELSE 0.01 END, 'title', r) AS title,
    CASE kind WHEN 7 THEN 1 + floor(300 * u('episode', r) ** 3) END AS episode_nr FROM movies;
INSERT INTO name BY NAME SELECT scatter(range, persons_n()) AS id,
    named(getvariable('persons'), CASE WHEN range < persons_n() / 50 THEN 0.4 ELSE 0.02 END, 'person', range) AS name,
    CASE WHEN range % 10 < 4 THEN 'm' WHEN range % 10 < 7 THEN 'f' END AS gender,
    CASE WHEN u('code', range) > 0.02 THEN upper(name[1]) || hash(name[:4]) % 600 END AS name_pcode_cf
    FROM range(persons_n());
INSERT INTO char_name BY NAME SELECT scatter(range, characters_n()) AS id, named(getvariable('characters'),
    CASE WHEN range < characters_n() / 500 THEN 0.5 ELSE 0.02 END, 'character', range) AS name
    FROM range(characters_n());
INSERT INTO company_name BY NAME SELECT scatter(range, companies_n()) AS id,
    named(getvariable('companies'), CASE WHEN range < companies_n() / 20 THEN 0.5 ELSE 0.1 END, 'company', range)
        AS name,
    CASE WHEN u('code', range) > 0.05 THEN code(country((range % 40 + 0.5) / 40)) END AS country_code
    FROM range(companies_n());
INSERT INTO keyword BY NAME SELECT scatter(range, keywords_n()) AS id,
    coalesce( -- each known one is rarer than the last
    CASE range % 5 WHEN 0 THEN getvariable('keywords')[1 + range // 5] END, lower(word('keyword', range)) || '-'
    || lower(word('word', range)) || pick(['', '', '', '-sequel'], u('keyword', range))) AS keyword
    FROM range(keywords_n());

INSERT INTO cast_info BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id, role AS role_id,
    scatter(10 * floor(persons_n() / 10 * u('person', r, j) ** CASE WHEN r < n / 100 THEN 2 ELSE 1.6 END) + CASE role
        WHEN 1 THEN floor(4 * u('m', r, j)) WHEN 2 THEN 4 + floor(3 * u('f', r, j)) ELSE floor(10 * u('any', r, j)) END,
        persons_n()) AS person_id,
    CASE WHEN u('played', r, j) < CASE WHEN role < 3 THEN 0.6 ELSE 0.02 END
        THEN scatter(floor(characters_n() * u('character', r, j) ** 1.8), characters_n()) END AS person_role_id,
    CASE WHEN role < 3 AND u('voiced', r, j) < CASE g WHEN 2 THEN 0.8 ELSE 0.03 END THEN pick(['(voice)', '(voice)',
        '(voice) (uncredited)', '(voice: English version)', '(voice: Japanese version)'], u('voice', r, j))
        WHEN u('noted', r, j) < CASE WHEN role < 3 THEN 0.25 ELSE 0.8 END THEN pick(CASE
        WHEN role < 3 THEN ['(uncredited)', '(uncredited)', '(archive footage)', '(credit only)',
            '(as ' || word('as', j) || ')']
        WHEN role = 3 THEN ['(producer)', '(producer)', '(executive producer)', '(co-producer)', '(line producer)']
        WHEN role = 4 THEN ['(written by)', '(written by)', '(writer)', '(story)', '(screenplay)', '(head writer)',
            '(story editor)'] ELSE ['(assistant)', '(as ' || word('as', j) || ')'] END, u('note', r, j)) END AS note
    FROM (SELECT *,
        pick([1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 10, 11, 12], u('role', r, j)) AS role
        FROM (SELECT *, unnest(range(times('cast', r, n, 12, 0.45))) AS j FROM movies));
INSERT INTO movie_info BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id, type AS info_type_id,
    CASE type WHEN 8 THEN place WHEN 4 THEN language(place)
        WHEN 3 THEN genre(CASE j WHEN 2 THEN genre ELSE u('genre', r, j) ** 1.5 END)
        WHEN 16 THEN place || ':' || hash(r, j) % 28 + 1 || ' ' || pick(['May', 'June', 'October'], u('month', r, j))
            || ' ' || coalesce(year, 1999) + pick([0, 0, 0, 0, 1, 2], u('year', r, j))
        WHEN 5 THEN place || ':' || hash(r, j) % 10 + 9 WHEN 1 THEN (60 + hash(r, j) % 90)::TEXT
        WHEN 105 THEN '$' || (hash(r, j) % 9 + 1) * (10 ** floor(4 + 4 * u('budget', r, j)))::INT
        ELSE word('text', hash(r, j)) || repeat(' ' || word('more', hash(r, j)), (hash(r, j) % 20)::INT) END AS info,
    CASE WHEN type = 16 AND u('noted', r, j) < 0.3 THEN pick(['(internet)', '(premiere)', '(limited)'], u('note', r, j))
        WHEN type = 98 THEN word('author', r) END AS note
    FROM (SELECT *, CASE WHEN u('abroad', r, j) < 0.6 THEN country ELSE country(u('place', r, j)) END AS place,
        CASE WHEN j < 6 THEN [8, 4, 3, 16, 1, 2][1 + j]
            ELSE pick([16, 16, 16, 16, 16, 3, 8, 5, 17, 17, 15, 98, 105, 107, 18, 13], u('type', r, j)) END AS type
        FROM (SELECT *, unnest(range(times('info', r, n, 6, 0.4))) AS j FROM movies));
INSERT INTO movie_info_idx BY NAME SELECT row_number() OVER (ORDER BY r, type) AS id, id AS movie_id,
    type AS info_type_id,
    CASE type WHEN 101 THEN round(least(9.9, greatest(1, 7 - 2 * (r / n) ** 0.2
            + 4 * (u('rate', r) + u('rate', r, 1) + u('rate', r, 2) - 1.5))), 1)::TEXT
        WHEN 100 THEN (5 + floor(90000 * u('votes', r) / (1 + r / 20)))::INT::TEXT WHEN 99 THEN hash(r)::TEXT
        ELSE (1 + r // 9)::TEXT END AS info
    FROM (SELECT *, unnest(CASE WHEN r < 2250 AND r % 9 = 0 THEN [99, 100, 101, 112]
        WHEN r < 450 AND r % 9 = 1 THEN [99, 100, 101, 113] ELSE [99, 100, 101] END) AS type
        FROM movies WHERE u('rated', r) < 0.95 * pow(r / n + 1, -8));
INSERT INTO movie_companies BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id,
    scatter(40 * floor(companies_n() / 40 * u('company', r, j) ** 2) + own, companies_n()) AS company_id,
    type AS company_type_id, CASE WHEN u('noted', r, j) > 0.65 THEN NULL WHEN type = 2 AND u('plain', r, j) < 0.7
        THEN pick(['(co-production)', '(presents)', '(in association with)', '(as Metro-Goldwyn-Mayer Pictures)'],
            u('note', r, j))
        ELSE '(' || coalesce(year, 1999) + pick([0, 0, 1, 2, 5], u('year', r, j)) || ') ('
            || pick([country((own + 0.5) / 40), country, 'USA', 'worldwide'], u('place', r, j)) || ') ('
            || pick(['theatrical', 'theatrical', 'DVD', 'DVD', 'VHS', 'TV', 'TV', 'Blu-ray'], u('medium', r, j)) || ')'
        END AS note
    FROM (SELECT *, CASE WHEN u('own', r, j) < 0.7 THEN slot ELSE floor(40 * u('other', r, j)) END AS own,
        CASE WHEN u('type', r, j) < 0.45 THEN 1 ELSE 2 END AS type
        FROM (SELECT *, unnest(range(times('companies', r, n, 1, 0.5))) AS j FROM movies));
INSERT INTO movie_keyword BY NAME SELECT row_number() OVER (ORDER BY movie_id, keyword_id) AS id, * FROM (
    SELECT DISTINCT id AS movie_id,
        scatter(CASE WHEN u('genre', r, j) < 0.4 THEN k - k % 14 + g ELSE k END, keywords_n()) AS keyword_id
    FROM (SELECT *, CASE WHEN j < 6 AND r < n / 50
        THEN 5 * floor(len(getvariable('keywords')) * u('known', r, j) ** 1.5)
        ELSE floor((keywords_n() - 14) * u('keyword', r, j) ** 2) END AS k
        FROM (SELECT *, unnest(range(times('keywords', r, n, 1.8, 0.6))) AS j FROM movies)));
INSERT INTO movie_link BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id,
    pick([1, 1, 1, 2, 2, 2, 3, 4, 5, 5, 6, 6, 7, 8, 9, 9, 10, 10, 11, 12, 13, 14, 15, 17], u('link', r, j))
        AS link_type_id,
    scatter(CASE WHEN u('sequel', r, j) < 0.5 THEN r - r % 4 + (r + 1 + j) % 4
        ELSE floor(n / 60 * u('linked', r, j) ** 2) END, n) AS linked_movie_id
    FROM (SELECT *, unnest(range(1 + floor(3 * u('links', r))::INT)) AS j FROM movies WHERE r < n / 60);
INSERT INTO complete_cast BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id, j AS subject_id,
    pick([3, 4, 4], u('status', r, j) ** CASE WHEN r < n / 100 THEN 0.7 ELSE 1.5 END) AS status_id
    FROM (SELECT *, unnest([1, 2]) AS j FROM movies) WHERE u('complete', r, j) < 0.6 * pow(r / n + 1, -16);
INSERT INTO person_info BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, scatter(r, persons_n()) AS person_id,
    pick([19, 22, 21, 21, 17, 17, 15, 107], u('type', r, j)) AS info_type_id,
    repeat(word('info', hash(r, j)) || ' ', CASE info_type_id WHEN 19 THEN 30 ELSE 1 END) AS info,
    CASE WHEN info_type_id <> 19 THEN NULL WHEN u('by', r, j) < 0.05 THEN 'Volker Boehm'
        ELSE word('author', floor(3000 * u('author', r, j) ** 3)) END AS note
    FROM (SELECT range AS r, unnest(range(times('info', range, persons_n(), 0.7, 0.35))) AS j FROM range(persons_n()));
INSERT INTO aka_name BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, scatter(r, persons_n()) AS person_id,
    named(getvariable('persons'), 0.1, 'aka', hash(r, j)) AS name
    FROM (SELECT range AS r, unnest(range(times('aka', range, persons_n(), 0.22, 0.35))) AS j FROM range(persons_n()));
INSERT INTO aka_title BY NAME SELECT row_number() OVER (ORDER BY r, j) AS id, id AS movie_id, kind AS kind_id,
    named(getvariable('titles'), 0.05, 'aka', hash(r, j)) AS title, year AS production_year
    FROM (SELECT *, unnest(range(times('akas', r, n, 0.15, 0.45))) AS j FROM movies);
DROP TABLE movies;
