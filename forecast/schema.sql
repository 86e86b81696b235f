-- The index over ledgers. Nothing here is the truth: every row can be read again from its ledger.
CREATE TABLE IF NOT EXISTS ledgers (
    ledger VARCHAR PRIMARY KEY,   -- path, relative to the store's folder where that is possible
    sha256 VARCHAR NOT NULL       -- of the ledger's bytes when it was indexed
);
CREATE TABLE IF NOT EXISTS runs (
    run_id VARCHAR NOT NULL,
    ledger VARCHAR NOT NULL,
    line BIGINT NOT NULL,         -- counted from 1
    study VARCHAR,
    registration VARCHAR,
    target VARCHAR,
    replicate BIGINT,
    design_hash VARCHAR NOT NULL,
    good_view_fraction DOUBLE,
    n_samples DOUBLE,
    settings VARCHAR NOT NULL,    -- JSON
    seed HUGEINT,
    status VARCHAR NOT NULL,
    record VARCHAR NOT NULL       -- the whole run, JSON
);
CREATE TABLE IF NOT EXISTS evaluations (
    run_id VARCHAR NOT NULL,
    ledger VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    value DOUBLE NOT NULL
);
