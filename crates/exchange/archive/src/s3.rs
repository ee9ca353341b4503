//! Archives in buckets that speak S3.
//!
//! `object_store` speaks to them, and asynchronously; an archive is copied file by file, so each call is waited for here.

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

use crate::ArchiveError;

pub(crate) struct Bucket {
    runtime: Runtime,
    objects: Arc<dyn ObjectStore>,
    prefix: String,
    name: String,
}

impl Bucket {
    /// The place `BUCKET/PREFIX`.
    pub(crate) fn open(place: &str) -> Result<Self, ArchiveError> {
        let name = format!("s3://{place}");
        let refused = |error: &dyn std::fmt::Display| ArchiveError::Refused(format!("{name}: {error}"));
        // Reqwest looks for one that was chosen for the process; nothing else here chooses.
        let _chosen_before = rustls::crypto::ring::default_provider().install_default();
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let s3 = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let objects = Arc::new(s3.map_err(|error| refused(&error))?);
        let prefix = prefix.trim_end_matches('/').to_owned();
        let runtime = runtime().map_err(|error| refused(&error))?;
        Ok(Self { runtime, objects, prefix, name })
    }

    fn key(&self, key: &str) -> Key {
        if self.prefix.is_empty() { Key::from(key) } else { Key::from(format!("{}/{key}", self.prefix)) }
    }

    fn failed(&self, key: &str) -> impl FnOnce(object_store::Error) -> ArchiveError {
        let what = format!("{}/{key}", self.name);
        move |error| ArchiveError::Refused(format!("{what}: {error}"))
    }

    /// Puts an object there, in the place of one of that name.
    pub(crate) fn put(&self, key: &str, content: Vec<u8>) -> Result<(), ArchiveError> {
        let put = self.runtime.block_on(self.objects.put(&self.key(key), content.into()));
        put.map(|_| ()).map_err(self.failed(key))
    }

    /// An object; `None` if there is none of that name.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let got = self.runtime.block_on(async {
            let found = self.objects.get(&self.key(key)).await?;
            found.bytes().await
        });
        match got {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key)(error)),
        }
    }

    /// The names under `key`, one level deep.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<String>, ArchiveError> {
        let under = Some(self.key(key)).filter(|key| !key.as_ref().is_empty());
        let listed = self.runtime.block_on(self.objects.list_with_delimiter(under.as_ref()));
        let listed = listed.map_err(self.failed(key))?;
        let folders = listed.common_prefixes.iter();
        let mut names: Vec<String> =
            folders.filter_map(|folder| Some(folder.filename()?.to_owned())).collect();
        names.sort();
        Ok(names)
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn what_is_put_is_there_under_its_prefix_and_folders_are_listed() {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        for prefix in ["", "a/b"] {
            let (objects, prefix) = (Arc::clone(&objects), prefix.to_owned());
            let bucket = Bucket { runtime: runtime().unwrap(), objects, prefix, name: "memory".to_owned() };
            assert_eq!(bucket.list("recorder-0").unwrap(), [] as [&str; 0]);
            for (day, byte) in [("2026-11-24", 2), ("2026-11-23", 1), ("2026-11-23", 3)] {
                bucket.put(&format!("recorder-0/{day}/0.seg.zst"), vec![byte; 5]).unwrap();
            }
            assert_eq!(bucket.list("recorder-0").unwrap(), ["2026-11-23", "2026-11-24"]);
            assert_eq!(bucket.get("recorder-0/2026-11-23/0.seg.zst").unwrap(), Some(vec![3; 5]));
            assert_eq!(bucket.get("recorder-0/2026-11-23/1.seg.zst").unwrap(), None);
        }
    }
}
