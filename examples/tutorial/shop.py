"""A made-up shop, whose log the first tutorial is about."""

import numpy as np
import pandas as pd

CATEGORIES = [
    "boots",
    "sneakers",
    "sandals",
    "coats",
    "shirts",
    "jeans",
    "bags",
    "watches",
    "hats",
    "scarves",
]
BRANDS = [
    first + second + third
    for first in ["Ba", "De", "Fi", "Go", "Hu", "Ka", "Lo", "Mi", "Na", "Ru"]
    for second in ["la", "ne", "ri", "to", "va", "xi", "po", "du"]
    for third in ["", "do", "ma", "ro", "sun"]
]
STOCK = np.array(["in stock", "few left", "back order"])
FEATURES = [
    "text_score",
    "category_match",
    "price",
    "discount",
    "rating",
    "n_reviews",
]
FEATURES += ["sales_30d", "ctr_30d", "age_days", "n_words", "stock", "brand"]


def make_log(first_day, n_days, searches_per_day=40, random_state=0):
    """Return what was shown in each search, and what became of it, as a data frame.

    In May things change: there is a sale, there are new brands, and the feed of ratings breaks.
    """
    day = pd.Timestamp(first_day) + pd.to_timedelta(
        np.repeat(np.arange(n_days), searches_per_day), "D"
    )
    random = np.random.default_rng([random_state, day[0].toordinal()])
    shop = make_shop()

    # Searches: a few texts are frequent, most are rare, and some name the one product that is wanted.
    n_searches = len(day)
    frequency = 1 / np.arange(1, 301)
    text = random.choice(300, n_searches, p=frequency / frequency.sum())
    size = np.where(
        random.random(n_searches) < 0.06, 1, random.integers(8, 33, n_searches)
    )
    search = np.repeat(np.arange(n_searches), size)
    wanted = (text % len(CATEGORIES))[search]

    # What was found: mostly products of the right category. Brands that start in May are found only then.
    product = random.integers(0, len(shop) // 10, len(search)) * 10 + wanted
    other = random.random(len(search)) < 0.2
    product[other] = random.integers(0, len(shop), other.sum())
    in_may = (day >= "2025-05-01")[search]
    too_new = shop["is_new"].to_numpy()[product] & ~in_may
    search, product = np.unique([search[~too_new], product[~too_new]], axis=1)
    n, wanted, in_may = (
        len(search),
        (text % len(CATEGORIES))[search],
        (day >= "2025-05-01")[search],
    )
    found = shop.iloc[product].reset_index(drop=True)
    match = np.where(
        found["category"] == np.take(CATEGORIES, wanted), 1.0, -0.5
    ) + random.normal(0, 0.8, n)
    discount = np.where(
        random.random(n) < 0.2 + 0.3 * in_may,
        random.choice([5, 10, 20, 40], n),
        0,
    )
    stock = STOCK[random.choice(3, n, p=[0.75, 0.15, 0.1])]
    price = (
        found["price"] * (1 - discount / 100) * np.where(in_may, 1.25, 1.0)
    ).round(2)
    sales = random.poisson(np.exp(1 + 0.7 * found["quality"]))
    ctr = (
        (0.12 + 0.03 * found["quality"] + random.normal(0, 0.04, n))
        .clip(0.0)
        .round(3)
    )
    n_reviews = np.where(found["is_new"], 0, found["n_reviews"])
    rating = (
        (
            4
            + 0.4 * found["quality"]
            + random.normal(0, 0.5, n) / np.sqrt(n_reviews + 1)
        )
        .clip(1, 5)
        .round(1)
    )
    rating[(n_reviews == 0) | (in_may & (random.random(n) < 0.3))] = np.nan

    # How production ranks, and what people do: they look at the first rows most.
    text_score = (8 + 4 * match + random.normal(0, 1, n)).clip(0).round(2)
    production_score = pd.Series(
        text_score + 2 * np.log1p(sales) + random.normal(0, 0.5, n)
    ).round(3)
    position = (
        (-production_score).groupby(search).rank(method="first").astype(int)
    )
    thrift = 0.6 + 0.8 * (text % 3 == 0)[search]
    cheaper = -np.log(found["price"] / found["usual_price"])
    appeal = (
        match
        + 0.8 * found["quality"]
        + thrift * cheaper
        + (0.01 + 0.03 * in_may) * discount
    )
    appeal = appeal - 1.2 * (stock == "back order") + random.normal(0, 0.4, n)
    seen = random.random(n) < 1 / (1 + 0.05 * (position - 1))
    clicked = seen & (random.random(n) < 1 / (1 + np.exp(3.6 - 1.6 * appeal)))
    carted = clicked & (random.random(n) < 1 / (1 + np.exp(1.2 - appeal)))
    bought = carted & (random.random(n) < 0.5)

    log = pd.DataFrame(
        {
            "session": [f"{d:%y%m%d}-{s:05d}" for s, d in enumerate(day)],
            "date": day.strftime("%Y-%m-%d"),
            "query": [query_text(t) for t in text],
        }
    )
    log = log.iloc[search].reset_index(drop=True)
    log["position"] = position
    log["product"] = [f"P{p:05d}" for p in product]
    log["text_score"], log["category_match"] = (
        text_score,
        (found["category"] == np.take(CATEGORIES, wanted)),
    )
    log["price"], log["discount"], log["rating"], log["n_reviews"] = (
        price,
        discount,
        rating,
        n_reviews,
    )
    log["sales_30d"], log["ctr_30d"] = sales, ctr.mask(found["is_new"])
    log["age_days"] = found["age_days"]
    log["n_words"] = log["query"].str.split().str.len()
    log["stock"], log["brand"] = stock, found["brand"]
    log["production_score"] = production_score
    log["clicked"], log["carted"], log["bought"] = clicked, carted, bought
    log["dwell_seconds"] = np.where(clicked, random.gamma(2, 20, n), 0).round(1)
    log["ctr_of_the_day"] = (
        log.groupby(["date", "product"])["clicked"].transform("mean").round(3)
    )
    return log.sort_values(["session", "position"], ignore_index=True)


def make_shop(n_products=3000):
    random = np.random.default_rng(0)
    brand = np.minimum(random.zipf(1.3, n_products) - 1, 10**9) % len(BRANDS)
    brand = np.where(
        random.random(n_products) < 0.5,
        brand,
        random.integers(0, len(BRANDS), n_products),
    )
    category = np.arange(n_products) % len(CATEGORIES)
    usual_price = np.array([90, 70, 40, 150, 35, 60, 80, 200, 25, 20])[category]
    worth = random.normal(0, 1, len(BRANDS))
    is_new = brand >= len(BRANDS) - 40
    worth[-40:] = 1.0
    quality = 0.8 * worth[brand] + random.normal(0, 0.6, n_products)
    return pd.DataFrame(
        {
            "category": np.take(CATEGORIES, category),
            "brand": np.take(BRANDS, brand),
            "is_new": is_new,
            "quality": quality,
            "usual_price": usual_price,
            "price": usual_price
            * np.exp(random.normal(0, 0.5, n_products) + 0.1 * quality),
            "n_reviews": random.geometric(0.03, n_products)
            * (random.random(n_products) < 0.85),
            "age_days": random.integers(5, 900, n_products),
        }
    )


def query_text(t):
    words = [
        "",
        "red ",
        "black ",
        "women ",
        "men ",
        "cheap ",
        "winter ",
        "summer ",
        "leather ",
        "new ",
    ]
    return words[t // 10 % 10] + words[t // 100] + CATEGORIES[t % 10]


def to_rows(log):
    """Return the features, grades and search ids of a log: what the first part of the tutorial ends with."""
    X = log[FEATURES].astype({"stock": "category", "brand": "category"})
    y = log[["clicked", "carted", "bought"]].sum(axis=1)
    return X, y, log["session"]
