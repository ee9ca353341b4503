//! What is taken for a configuration, and what is refused.

use super::*;

fn over(store: Option<&str>, own: [Option<&str>; 2]) -> SitesConfig {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let place = |number: u8| Place {
        store: own[usize::from(number)].map(str::to_owned),
        ..Place::new(0, number, address(1), address(2))
    };
    SitesConfig {
        system: "test".into(),
        identity: "0123456789abcdef0123456789abcdef".into(),
        durability: Promise::Os,
        store: store.map(str::to_owned),
        sites: vec![place(0), place(1)],
        ..SitesConfig::default()
    }
}

#[test]
fn each_site_has_a_database_of_its_own_or_a_file() {
    let all = "postgres://db/bank_{cluster}_{number}";
    let config = over(Some(all), [None, Some("postgresql:///other")]);
    assert_eq!(config.check(), Ok(()));
    let database = |number| config.database(SiteId::new(0, number)).unwrap().unwrap();
    assert_eq!(
        (database(0).as_str(), database(1).as_str()),
        ("postgres://db/bank_0_0", "postgresql:///other")
    );
}

#[test]
fn a_database_of_two_sites_or_of_none_is_refused() {
    for (store, own, sql, why) in [
        (Some("postgres://db/bank"), [None, None], false, "same database as site 0.0: put {number} into"),
        (Some("postgres://"), [None, None], false, "begins with postgres://HOST"),
        (None, [Some("postgres:///a"), Some("postgres:///a")], false, "site 0.0: give each its own"),
        (Some("postgres://db/bank_{number}_{site}"), [None, None], false, "{site} is no placeholder"),
        (Some("host=db dbname=bank"), [None, None], false, "a URL that begins with postgres://"),
        (None, [None, None], true, "needs a PostgreSQL store"),
    ] {
        let mut config = over(store, own);
        config.sites[1].sql = sql.then(|| config.sites[1].clients);
        let refused = config.check().unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn only_a_file_that_is_not_there_is_to_be_created() {
    let dir = tempfile::tempdir().unwrap();
    let told = || SitesConfig::load(dir.path()).unwrap_err().to_string();
    assert!(told().ends_with("create one with `pares site init`"));
    std::fs::write(dir.path().join(SITES_FILE), b"\xff").unwrap();
    assert!(told().ends_with("valid UTF-8"));
}

#[test]
fn each_placeholder_that_is_missing_is_named_and_no_other() {
    let refused = |store: &str, elsewhere: SiteId| {
        let mut config = over(Some(store), [None, None]);
        (config.sites[1].cluster, config.sites[1].number) = (elsewhere.cluster.0, elsewhere.number);
        let told = config.check().unwrap_err();
        let (_, told) = told.split_once("put ").unwrap();
        told.split_once(" into").unwrap().0.to_owned()
    };
    assert_eq!(refused("postgres://db/a", SiteId::new(0, 1)), "{number}");
    assert_eq!(refused("postgres://db/a_{number}", SiteId::new(1, 0)), "{cluster}");
    assert_eq!(refused("postgres://db/a", SiteId::new(1, 1)), "{cluster} and {number}");
}

#[test]
fn a_system_has_a_name_that_can_stand_in_certificates() {
    for name in ["", "two words", &"x".repeat(64)] {
        let config = SitesConfig { system: name.to_owned(), ..over(None, [None, None]) };
        assert!(config.check().unwrap_err().contains("the system's name"), "{name}");
    }
}

fn config(head: &str, address: &str) -> Result<(), String> {
    let text = format!(
        "system = \"x\"\nidentity = \"0123456789abcdef0123456789abcdef\"\n{head}\n[[site]]\ncluster = 0\nnumber = 0\npeers = \"127.0.0.1:1\"\nclients = \"{address}\"\n"
    );
    toml::from_str::<SitesConfig>(&text).unwrap().check()
}

#[test]
fn beyond_loopback_certificates_required_unless_waived() {
    for address in ["127.0.0.1:7", "127.9.0.1:7", "[::1]:7"] {
        assert_eq!(config("", address), Ok(()), "{address}");
    }
    for address in ["10.0.0.1:7", "0.0.0.0:7", "[::]:7", "[2001:db8::1]:7"] {
        let why = config("", address).unwrap_err();
        assert!(why.contains("clients") && why.contains("`tls`") && why.contains("`plain = true`"), "{why}");
        assert_eq!(config("tls = \"tls\"", address), Ok(()));
        assert_eq!(config("plain = true", address), Ok(()));
    }
    assert!(config("plain = true\ntls = \"tls\"", "127.0.0.1:7").is_err());
}

#[test]
fn what_counts_as_a_conflict_is_called_in_the_file_as_ever() {
    let read = |isolation: &str| {
        let text = over(None, [None, None]).to_text();
        assert!(text.contains("isolation = \"snapshot\""), "{text}");
        toml::from_str::<SitesConfig>(&text.replace("\"snapshot\"", isolation))
    };
    let config = read("\"serialisable\"").unwrap();
    assert_eq!(config.isolation, Isolation::Serialisable);
    assert!(config.to_text().contains("isolation = \"serialisable\""));
    let refused = read("\"none\"").unwrap_err().to_string();
    assert!(refused.contains("`none` is neither `snapshot` nor `serialisable`"), "{refused}");
}
