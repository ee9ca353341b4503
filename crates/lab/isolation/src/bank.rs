//! Transfers between accounts: the sum of all of them is the same in every snapshot, and no account is below zero where transfers that
//! would overdraw are refused.

/// What is wrong with snapshots of all accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imbalance {
    /// Snapshots with another sum.
    pub total_off: u64,
    /// Snapshots with an account below zero.
    pub negative: u64,
    /// Snapshots with another number of accounts.
    pub incomplete: u64,
}

/// Holds snapshots of all accounts against how many there are and what they have together.
#[must_use]
pub fn check<'a>(snapshots: impl IntoIterator<Item = &'a [i128]>, accounts: usize, total: i128) -> Imbalance {
    let mut found = Imbalance::default();
    for balances in snapshots {
        found.total_off += u64::from(balances.iter().sum::<i128>() != total);
        found.negative += u64::from(balances.iter().any(|balance| *balance < 0));
        found.incomplete += u64::from(balances.len() != accounts);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_between_two_halves_of_a_transfer_is_found() {
        let good: &[i128] = &[40, 60, 100];
        assert_eq!(check([good, good], 3, 200), Imbalance::default());
        let torn: &[i128] = &[40, 50, 100];
        let overdrawn: &[i128] = &[-10, 110, 100];
        let short: &[i128] = &[100, 100];
        let found = check([good, torn, overdrawn, short], 3, 200);
        assert_eq!(found, Imbalance { total_off: 1, negative: 1, incomplete: 1 });
    }
}
