//! The one path under every interruption: memory store, scripted provider, paused time. Nothing here waits in
//! real time, and nothing depends on luck.

mod bench;
mod moody;
mod overheard;

mod cancelling;
mod carrying;
mod crashing;
mod leaving;
mod polling;
mod progress;
mod retrying;
mod storing;
mod timing;
