//! Where archives lie: a directory, or (with the feature `s3`) buckets that speak S3.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::manifest::io;

/// A place for archives.
pub struct Store {
    name: String,
    place: Place,
}

enum Place {
    Directory(PathBuf),
    #[cfg(feature = "s3")]
    Bucket(crate::s3::Bucket),
}

impl Store {
    /// The place that people call so: a directory, made if need be, or `s3://BUCKET/PREFIX`. Keys, region and endpoint of S3 come from
    /// the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP`.
    ///
    /// # Errors
    /// If there can be no such place.
    pub fn open(name: &str) -> Result<Self, ArchiveError> {
        let place = match name.strip_prefix("s3://") {
            Some(bucket) => Self::bucket(bucket)?,
            None => {
                fs::create_dir_all(name).map_err(io(Path::new(name)))?;
                Place::Directory(PathBuf::from(name))
            }
        };
        Ok(Self { name: name.to_owned(), place })
    }

    /// The same to read from: a directory must be there.
    ///
    /// # Errors
    /// If there is no such place.
    pub fn open_existing(name: &str) -> Result<Self, ArchiveError> {
        if !name.starts_with("s3://") && !Path::new(name).is_dir() {
            return Err(ArchiveError::Refused(format!(
                "{name} is not an archive: the directory does not exist"
            )));
        }
        Self::open(name)
    }

    #[cfg(feature = "s3")]
    fn bucket(place: &str) -> Result<Place, ArchiveError> {
        crate::s3::Bucket::open(place).map(Place::Bucket)
    }

    #[cfg(not(feature = "s3"))]
    fn bucket(_: &str) -> Result<Place, ArchiveError> {
        let what = "this build does not support S3: install it with `--features s3`";
        Err(ArchiveError::Refused(what.to_owned()))
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Puts an object there, in the place of one of that name.
    ///
    /// # Errors
    /// If it does not take it.
    pub fn put(&self, key: &str, content: Vec<u8>) -> Result<(), ArchiveError> {
        match &self.place {
            Place::Directory(dir) => {
                let path = dir.join(key);
                let folder = path.parent().expect("it is in the directory");
                fs::create_dir_all(folder).map_err(io(folder))?;
                pares_os::replace_shared_file(&path, &content).map_err(io(&path))
            }
            #[cfg(feature = "s3")]
            Place::Bucket(bucket) => bucket.put(key, content),
        }
    }

    /// An object; `None` if there is none of that name.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        match &self.place {
            Place::Directory(dir) => {
                let path = dir.join(key);
                match fs::read(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    read => read.map(Some).map_err(io(&path)),
                }
            }
            #[cfg(feature = "s3")]
            Place::Bucket(bucket) => bucket.get(key),
        }
    }

    /// The folders under `key`, in order.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn list(&self, key: &str) -> Result<Vec<String>, ArchiveError> {
        match &self.place {
            Place::Directory(dir) => {
                let path = dir.join(key);
                let entries = match fs::read_dir(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                    entries => entries.map_err(io(&path))?,
                };
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                let mut names: Vec<String> = names.collect();
                names.sort();
                Ok(names)
            }
            #[cfg(feature = "s3")]
            Place::Bucket(bucket) => bucket.list(key),
        }
    }
}
