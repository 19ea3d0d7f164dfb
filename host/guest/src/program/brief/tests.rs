//! Which instances come from pools, and which programs are kept for them.

use weir_config::{Limits, MainConfig};

use super::*;
use crate::program::{Compilation, Linked, Runtime, Sources, tests::wanted};

fn programs() -> Programs {
    let sources =
        Sources::new(&MainConfig::default(), Arc::default(), Compilation::default(), Arc::default());
    Programs::new(Runtime::new(crate::AddressClass::Large).unwrap(), sources, 1)
}

fn free(programs: &Programs) -> usize {
    programs.pooled.as_ref().unwrap().brief.places.available_permits()
}

#[tokio::test]
async fn who_finds_no_place_in_the_pools_has_its_instance_on_demand() {
    let (programs, component, limits) =
        (programs(), ComponentSource::Path(test_guests::path("hook")), Limits::default());
    let wanted = wanted(&component, &limits);
    let places = usize::try_from(PLACES).unwrap();
    let (lasting, _) = programs.load_for_one(wanted, false).await.unwrap();
    assert_eq!((lasting.program.places.is_none(), free(&programs)), (true, places));

    let mut held = Vec::new();
    for _ in 0..places {
        held.push(programs.load_for_one(wanted, true).await.unwrap());
    }
    assert!(held.iter().all(|(loaded, _)| Arc::ptr_eq(&loaded.program, &held[0].0.program)));
    assert!(held[0].0.program.places.is_some());
    assert_eq!(free(&programs), 0);
    let (further, _) = programs.load_for_one(wanted, true).await.unwrap();
    assert!(Arc::ptr_eq(&further.program, &lasting.program));
    assert!(held[0].0.clone().for_instances(1).is_none());
    assert!(lasting.clone().for_instances(1).is_some());

    let (again, place) = held.pop().unwrap();
    drop(place);
    assert!(again.for_instances(1).is_some());
    drop(held);
    assert_eq!(free(&programs), places);
}

#[tokio::test]
async fn a_program_is_kept_for_the_next_start_until_others_take_its_place() {
    let (programs, component, limits) =
        (programs(), ComponentSource::Path(test_guests::path("hook")), Limits::default());
    let (first, _) = programs.load_for_one(wanted(&component, &limits), true).await.unwrap();
    let kept = Arc::downgrade(&first.program);
    drop(first);
    let (again, _) = programs.load_for_one(wanted(&component, &limits), true).await.unwrap();
    assert!(std::ptr::eq(kept.as_ptr(), Arc::as_ptr(&again.program)));

    let brief = programs.pooled.as_ref().unwrap();
    let of_bytes = |footprint| {
        let Program { linked, hash, places, .. } = &*again.program;
        let linked = match linked {
            Linked::Program(pre) => Linked::Program(pre.clone()),
            _ => unreachable!("it is a program"),
        };
        let program = Program {
            linked,
            hash: *hash,
            footprint,
            cached: 0,
            descriptions: Arc::default(),
            places: places.clone(),
            sends_http: false,
            knows_weir: true,
            exported: None,
            foreign: Default::default(),
        };
        Loaded { program: Arc::new(program), ..again.clone() }
    };
    brief.keep(&of_bytes(KEPT - again.program.footprint));
    brief.keep(&again);
    assert_eq!(brief.kept.lock().len(), 2);
    // The least recently used one goes.
    brief.keep(&of_bytes(1));
    let kept: Vec<_> = brief.kept.lock().iter().map(|it| it.program.footprint).collect();
    assert_eq!(kept, [again.program.footprint, 1]);
    brief.keep(&of_bytes(KEPT));
    assert_eq!(brief.kept.lock().len(), 1);
    assert!(of_bytes(KEPT).program.can_be_kept() && !of_bytes(KEPT + 1).program.can_be_kept());
}
