//! What a change of the schema must not bring: what two sites would take for different things though it is one, or would not all be able to carry out.
//!
//! Items are distinguished by their text. A key of `numeric` is the same row as 1.0 and as 1.00, two sites would each commit an item, and no
//! site could apply both. So values that are compared have a type whose equal values have one text. A statement is refused for what it brings
//! again, and only where it is tried first: what an older release let in continues, and a record is carried out as it is.

use std::collections::{BTreeMap, BTreeSet};

use postgres::GenericClient;

use super::lexer::{SqlToken, split};
use super::texts::{BASES, KEPT_AS_TEXT};
use super::{SqlError, sql};

/// Columns that are compared: those of unique indexes and of foreign keys, with the column referred to; and expressions by which rows go.
const COMPARED: &str = "
    parts AS MATERIALIZED (SELECT c.oid, t.name FROM pares_tables t JOIN pg_class c ON c.oid = to_regclass(t.name)),
    columns AS MATERIALIZED (
        SELECT a.attrelid, a.attnum, format('%I', a.attname) AS column, format_type(a.atttypid, a.atttypmod) AS written,
            t.typtype = 'e' OR t.oid = ANY (ARRAY['int2', 'int4', 'int8', 'bool', 'text', 'varchar', 'uuid', 'date', 'time', 'timestamp', 'timestamptz', 'bytea',
                'inet', 'cidr', 'macaddr']::regtype[]) OR t.oid = 'numeric'::regtype AND greatest(a.atttypmod, b.modifier) >= 0 AS plain,
            -- What has the same text has the same form.
            CASE WHEN t.oid IN ('int2'::regtype, 'int4'::regtype) THEN 'int8'::regtype WHEN t.oid = 'varchar'::regtype THEN 'text'::regtype ELSE t.oid END AS form,
            CASE WHEN t.oid = 'numeric'::regtype THEN greatest(a.atttypmod, b.modifier) - 4 & 2047 END AS scale,
            coalesce(l.collisdeterministic, true) AS exact
        FROM pg_attribute a JOIN bases b ON b.kind = a.atttypid JOIN pg_type t ON t.oid = b.base LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT oid FROM parts)),
    -- What types are made of, of columns; whether that is below a domain, or part of a row.
    inside (kind, part, is_deep) AS (
        SELECT atttypid, atttypid, false FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid IN (SELECT oid FROM parts)
        UNION SELECT i.kind, x.part, i.is_deep OR t.typtype IN ('d', 'c') FROM inside i JOIN pg_type t ON t.oid = i.part, LATERAL (
            SELECT t.typelem WHERE t.typcategory = 'A' AND t.typelem <> 0 UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd'
            UNION ALL SELECT atttypid FROM pg_attribute WHERE t.typtype = 'c' AND attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped) x (part)),
    -- Functions with a body of their own: one that says IMMUTABLE may ask for anything all the same.
    written AS MATERIALIZED (SELECT g.oid FROM pg_proc g JOIN pg_language l ON l.oid = g.prolang WHERE l.lanname NOT IN ('internal', 'c') AND g.oid >= 16384),
    -- What rows are checked, computed or ordered by where versions are applied and sites are filled.
    expressions (name, tree) AS (
        SELECT format('CHECK %I of %s', x.conname, CASE WHEN x.contypid <> 0 THEN x.contypid::regtype::text ELSE p.name END), x.conbin::text
        FROM pg_constraint x LEFT JOIN parts p ON p.oid = x.conrelid WHERE x.contype = 'c' AND (p.name IS NOT NULL OR x.contypid <> 0)
        UNION ALL SELECT format('generated column %I of %s', a.attname, p.name), d.adbin::text
        FROM parts p JOIN pg_attribute a ON a.attrelid = p.oid AND a.attgenerated <> '' JOIN pg_attrdef d ON d.adrelid = p.oid AND d.adnum = a.attnum
        UNION ALL SELECT format('index %s of %s', i.indexrelid::regclass, p.name), concat(i.indexprs::text, ' ', i.indpred::text)
        FROM parts p JOIN pg_index i ON i.indrelid = p.oid)";

/// What is not fit of tables that participate.
const FAULTS: &str = "
    SELECT format('column %s of %s has type %s, whose equal values can have different texts, and is part of a key: give it another type, as numeric(p, s) or text',
        k.column, p.name, k.written)
    FROM parts p JOIN columns k ON k.attrelid = p.oid WHERE NOT (k.plain AND k.exact) AND (
        EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p.oid AND i.indisunique AND k.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))
        OR EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = p.oid AND f.contype = 'f' AND k.attnum = ANY (f.conkey)))
    UNION ALL SELECT format('column %I of %s has type %s, which holds %s inside a domain or a row, where its values would not come back as they were: use jsonb there, or a column of that type itself',
        a.attname, p.name, format_type(a.atttypid, a.atttypmod), i.part::regtype)
    FROM parts p JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN inside i ON i.kind = a.atttypid AND i.is_deep AND i.part IN (SELECT kind FROM kept_as_text)
    UNION ALL SELECT format('unique index %s of %s compares in a way of its own: leave out COLLATE and the operator class', i.indexrelid::regclass, p.name)
    FROM parts p JOIN pg_index i ON i.indrelid = p.oid AND i.indisunique WHERE EXISTS (
        SELECT FROM unnest(i.indcollation, i.indclass) u (collation_id, class_id) JOIN pg_opclass o ON o.oid = u.class_id LEFT JOIN pg_collation l ON l.oid = u.collation_id
        WHERE o.opcnamespace <> 'pg_catalog'::regnamespace OR NOT coalesce(l.collisdeterministic, true))
    UNION ALL SELECT format('column %s of %s refers to column %s of another type: give both the same', ours.column, p.name, theirs.column)
    FROM parts p JOIN pg_constraint f ON f.conrelid = p.oid AND f.contype = 'f', unnest(f.conkey, f.confkey) u (own, other), columns ours, columns theirs
    WHERE ours.attrelid = p.oid AND ours.attnum = u.own AND theirs.attrelid = f.confrelid AND theirs.attnum = u.other
        AND (ours.form, ours.scale) IS DISTINCT FROM (theirs.form, theirs.scale)
    UNION ALL SELECT format('EXCLUDE (%I of %s) is watched by each site alone: two could each write one half of what it excludes. Leave it out: a UNIQUE key is watched by all, and so is what SERIALIZABLE transactions have read', x.conname, p.name)
    FROM parts p JOIN pg_constraint x ON x.conrelid = p.oid AND x.contype = 'x'
    UNION ALL SELECT format('%s watches column %I of %s, which changes by addition: it could pass at two sites alone and not with both. Leave one of them out: the column, with another comment, is written as a row is', pg_describe_object(d.classid, d.objid, 0),
        a.attname, p.name)
    FROM parts p JOIN pg_attribute a ON a.attrelid = p.oid AND col_description(p.oid, a.attnum) = 'pares: delta'
        JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = p.oid AND d.refobjsubid IN (0, a.attnum)
    WHERE d.classid = 'pg_attrdef'::regclass AND d.refobjsubid > 0 AND d.objid NOT IN (SELECT oid FROM pg_attrdef WHERE adrelid = p.oid AND adnum = a.attnum)
        OR d.classid = 'pg_constraint'::regclass AND d.objid IN (
            SELECT oid FROM pg_constraint WHERE conrelid = p.oid AND contype = 'c' AND 0 = ANY (conkey))
        OR d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = p.oid AND (indexprs IS NOT NULL OR indpred IS NOT NULL))
    UNION ALL SELECT format('unique index %s of %s is NULLS NOT DISTINCT: leave that out, or make its columns NOT NULL', i.indexrelid::regclass, p.name)
    FROM parts p JOIN pg_index i ON i.indrelid = p.oid WHERE to_jsonb(i) ->> 'indnullsnotdistinct' = 'true'
    UNION ALL SELECT format('constraint %I of %s is NOT VALID, and a site that is filled could not hold rows that do not fit: change these first, and add it without NOT VALID',
        v.conname, CASE WHEN v.contypid <> 0 THEN v.contypid::regtype::text ELSE v.conrelid::regclass::text END)
    FROM pg_constraint v WHERE NOT v.convalidated AND (v.contypid <> 0 OR v.conrelid IN (SELECT oid FROM parts))
    UNION ALL SELECT format('%s asks for %s, which can be another thing at another site or later, when rows are written again: let it go by values of the row alone, '
            || 'by the server''s own functions that are IMMUTABLE (the time or the role can be a column with a DEFAULT)', x.name, f.called)
    FROM expressions x, LATERAL (
        SELECT g.oid::regprocedure::text FROM regexp_matches(x.tree, ':(?:funcid|opfuncid) ([0-9]+)', 'g') m JOIN pg_proc g ON g.oid = m[1]::oid
        WHERE g.oid IN (SELECT oid FROM written) OR g.provolatile = 'v' OR g.provolatile = 's' AND NOT (g.pronamespace = 'pg_catalog'::regnamespace AND (
            g.proname IN ('concat', 'concat_ws', 'format', 'to_char', 'to_date', 'to_timestamp', 'to_number', 'to_json', 'to_jsonb', 'array_to_string',
                'json_build_object', 'jsonb_build_object', 'json_build_array', 'jsonb_build_array')
            OR g.proargtypes::oid[] && ARRAY['date', 'time', 'timetz', 'timestamp', 'timestamptz', 'interval']::regtype[]::oid[]
                AND NOT (g.proname = 'age' AND g.pronargs = 1)))
        UNION ALL SELECT 'the time, a role or the like' WHERE x.tree LIKE '%{SQLVALUEFUNCTION%'
        UNION ALL SELECT 'a text as a time, which can be now' WHERE x.tree ~ '{COERCEVIAIO .*:resulttype (1082|1083|1114|1184|1266) '
        UNION ALL SELECT 'the number that a thing of the catalogue has' WHERE x.tree ~ ('(:varattno -|:(consttype|resulttype) ('
            || (SELECT string_agg(oid::text, '|') FROM pg_type WHERE typname ~ '^reg(?!is)' AND typnamespace = 'pg_catalog'::regnamespace) || ') )')) f (called)
    UNION ALL SELECT format('index %s of %s compares by functions that are written here (operator class %s): use one of the server''s own', i.indexrelid::regclass, p.name, o.opcname)
    FROM parts p JOIN pg_index i ON i.indrelid = p.oid, unnest(i.indclass) u (class_id) JOIN pg_opclass o ON o.oid = u.class_id
    WHERE EXISTS (SELECT FROM pg_amproc s WHERE s.amprocfamily = o.opcfamily AND s.amproc::oid IN (SELECT oid FROM written))
        OR EXISTS (SELECT FROM pg_amop s JOIN pg_operator r ON r.oid = s.amopopr WHERE s.amopfamily = o.opcfamily AND r.oprcode::oid IN (SELECT oid FROM written))
    UNION ALL SELECT format('the comment %L of %s is none that sites know: say COMMENT ON COLUMN a.b IS ''pares: delta'', so spelt, of a column of a replicated table',
        d.description, pg_describe_object(d.classoid, d.objoid, d.objsubid))
    FROM pg_description d WHERE d.objoid >= 16384 AND d.description ~* '^\\s*pares\\s*:'
        AND NOT (d.description = 'pares: delta' AND d.classoid = 'pg_class'::regclass AND d.objsubid > 0 AND d.objoid IN (SELECT oid FROM parts))
    UNION ALL SELECT format('trigger %I of %s would also do its work where versions are applied: leave it as it was made', g.tgname, p.name)
    FROM parts p JOIN pg_trigger g ON g.tgrelid = p.oid WHERE g.tgenabled IN ('A', 'R') AND NOT g.tgisinternal
        AND g.tgname NOT IN ('pares_insert', 'pares_update', 'pares_delete', 'pares_truncate')
    UNION ALL SELECT format('rule %I of %s would also do its work where versions are applied: leave it as it was made', r.rulename, p.name)
    FROM parts p JOIN pg_rewrite r ON r.ev_class = p.oid WHERE r.ev_enabled IN ('A', 'R')";

/// Names that stand in rows: of values of enums, and of parts of rows that are values themselves. One that is dropped has another name, as the server keeps it.
const NAMES: &str = "
    WITH RECURSIVE inside (part) AS (
        SELECT atttypid FROM pg_attribute WHERE NOT attisdropped
        UNION SELECT x.part FROM inside i JOIN pg_type t ON t.oid = i.part, LATERAL (SELECT t.typelem UNION ALL SELECT t.typbasetype) x (part))
    SELECT 'value ' || oid, enumlabel::text FROM pg_enum
    UNION ALL SELECT format('attribute %s %s', a.attrelid, a.attnum), a.attname::text
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND a.attnum > 0 AND c.oid >= 16384 WHERE c.relkind = 'c' OR c.relkind = 'r' AND c.reltype IN (SELECT part FROM inside)";

/// Where names without a schema lead.
const PATH: &str = "SELECT current_schema()::text";

/// What there is before a statement.
pub(super) struct Faults {
    faults: BTreeSet<String>,
    names: BTreeMap<String, String>,
    path: Option<String>,
}

impl Faults {
    pub(super) fn read(client: &mut impl GenericClient) -> Result<Self, SqlError> {
        let faults =
            client.query(&format!("{BASES}, {COMPARED}, {KEPT_AS_TEXT} {FAULTS}"), &[]).map_err(sql)?;
        let names = client.query(NAMES, &[]).map_err(sql)?;
        Ok(Self {
            faults: faults.iter().map(|row| row.get(0)).collect(),
            names: names.iter().map(|row| (row.get(0), row.get(1))).collect(),
            path: client.query_one(PATH, &[]).map_err(sql)?.get(0),
        })
    }

    /// Why a statement that has left it as `new` cannot be ordered.
    pub(super) fn brought(&self, new: &Self) -> Option<String> {
        if self.path != new.path {
            return Some("unqualified names, including the store's, would resolve to tables in this schema: give the schema another name".into());
        }
        let changed =
            |(name, now): &(&String, &String)| self.names.get(*name).is_some_and(|then| then != *now);
        if let Some((name, text)) = new.names.iter().find(changed) {
            let old = &self.names[name];
            return Some(match text.contains("pg.dropped") {
                true => format!("stored rows contain {old}: leave it, and add another one instead"),
                false => {
                    format!("stored rows contain {old}, not {text}: add a new value or column instead")
                }
            });
        }
        new.faults.difference(&self.faults).next().cloned()
    }
}

/// Schemas that a statement would drop with all that is in them.
pub(super) fn dropped_schemas(statement: &str) -> Vec<String> {
    let statements = split(statement);
    let drops = statements.iter().filter_map(|statement| match &statement.tokens[..] {
        [drop, schema, names @ .., cascade]
            if drop.is("DROP") && schema.is("SCHEMA") && cascade.is("CASCADE") =>
        {
            Some(names)
        }
        _ => None,
    });
    let names = drops.flat_map(|names| match names {
        [first, second, names @ ..] if first.is("IF") && second.is("EXISTS") => names,
        names => names,
    });
    names
        .filter_map(|name| match name {
            SqlToken::Word(word) => Some(word.to_ascii_lowercase()),
            SqlToken::Name(name) => Some(format!("\"{name}\"")),
            _ => None,
        })
        .collect()
}

/// Whether tables that participate, or the store's own, are in one of these schemas.
pub(super) fn holds_tables(schema: &str, client: &mut impl GenericClient) -> Result<bool, SqlError> {
    let query = "SELECT to_regnamespace($1) IN (SELECT current_schema()::regnamespace UNION ALL
        SELECT c.relnamespace FROM pares_tables t JOIN pg_class c ON c.oid = to_regclass(t.name))";
    let holds: Option<bool> = client.query_one(query, &[&schema]).map_err(sql)?.get(0);
    Ok(holds == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_go_with_their_tables_are_named() {
        assert_eq!(dropped_schemas("DROP SCHEMA IF EXISTS A, \"B\"\"b\" CASCADE;"), ["a", "\"B\"\"b\""]);
        assert_eq!(dropped_schemas("drop /* DROP */ schema a\n cascade -- b"), ["a"]);
        assert!(
            dropped_schemas("DROP SCHEMA a").is_empty()
                && dropped_schemas("DROP TABLE a CASCADE").is_empty()
                && dropped_schemas("").is_empty()
        );
    }
}
