//! Files that are cut short or have flipped bits: found, and never believed.

use super::*;

const ENTRIES: u8 = 50;

async fn filled() -> Vec<u8> {
    let disk = Disk::new();
    let store = on_disk(&disk, roomy());
    let mine = bucket(&store, "a");
    for number in 0..ENTRIES {
        set(&mine, &format!("{number:03}"), vec![number; 200]).await.unwrap();
    }
    store.close().await;
    disk.content()
}

/// Opens it and reads everything. Whatever it answers is what some transaction had left.
async fn is_sound_or_refused(content: Vec<u8>) -> Result<u8, String> {
    let store = on_disk(&Disk::of(content), roomy());
    store.open().await.map_err(|error| error.to_string())?;
    let mine = bucket(&store, "a");
    let mut known = Vec::new();
    let mut after = None;
    loop {
        let page = mine.list(String::new(), after, 1000).await.map_err(|error| error.to_string())?;
        known.extend(page.keys);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    for (number, key) in (0..).zip(&known) {
        assert_eq!(*key, format!("{number:03}"));
        let value = mine.get(key.clone(), u64::MAX).await.map_err(|error| error.to_string())?;
        assert_eq!(value.unwrap(), vec![number; 200]);
    }
    Ok(u8::try_from(known.len()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_found_or_harmless() {
    let whole = filled().await;
    assert_eq!(is_sound_or_refused(whole.clone()).await, Ok(ENTRIES));
    let mut random = fastrand::Rng::with_seed(27);
    let (mut whole_again, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut content = whole.clone();
        // Half of them in the header.
        let end = if random.bool() { 512 } else { content.len() };
        let byte = random.usize(0..end);
        content[byte] ^= 1 << random.u8(0..8);
        match is_sound_or_refused(content).await {
            Ok(_) => whole_again += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(whole_again > 100 && refused > 5, "{whole_again} sound, {refused} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_cut_short_is_opened_at_its_last_whole_state_or_refused() {
    let whole = filled().await;
    for length in (0..whole.len()).step_by(whole.len() / 150) {
        if length == 0 {
            continue;
        }
        if let Err(error) = is_sound_or_refused(whole[..length].to_vec()).await {
            assert!(error.contains("damaged") || error.contains("cannot be opened"), "{length}: {error}");
        }
    }
}
