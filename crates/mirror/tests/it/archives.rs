//! Folders of older servers are read, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;

use outlast_core::{ConversationId, OwnerId};
use outlast_mirror::{ArchiveError, StatusWord};

use crate::bench::{TestDir, ann, new_id, turn};

const SAID: &str = r#"{
  "conversationId": "20251031-1761930000000",
  "createdAt": "2025-10-31T17:00:00.000Z",
  "updatedAt": "2025-10-31T17:05:00.000Z",
  "messageCount": 2,
  "messages": [
    {"role": "user", "content": "why?"},
    {"role": "assistant", "content": "because"}
  ]
}"#;
const STOOD: &str = r#"{
  "conversationId": "20251031-1761930000000", "status": "completed",
  "toolName": "perplexity_deep_research", "startedAt": "2025-10-31T17:00:00.000Z",
  "updatedAt": "2025-10-31T17:05:00.000Z", "completedAt": "2025-10-31T17:05:00.000Z", "attempts": 0
}"#;

fn old() -> ConversationId {
    ConversationId::new("20251031-1761930000000")
}

fn put(place: &TestDir, id: &ConversationId, file: &str, text: &str) {
    fs::create_dir_all(place.folder(id)).unwrap();
    fs::write(place.folder(id).join(file), text).unwrap();
}

#[tokio::test]
async fn an_older_servers_folder_is_readable_only_by_the_owner() {
    let place = TestDir::new();
    let face = place.face().await;
    put(&place, &old(), "conversation.json", SAID);
    put(&place, &old(), "status.json", STOOD);
    let found = face.mirror.read_archived(&ann(), &old()).await.unwrap().unwrap();
    assert_eq!(found.conversation.messages[1].content, "because");
    assert_eq!(found.status.unwrap().status, StatusWord::Completed);
    assert_eq!(found.folder, place.folder(&old()));
    let theirs = face.mirror.read_archived(&OwnerId::new("bob"), &old()).await.unwrap();
    assert_eq!(theirs, None);
    assert_eq!(face.mirror.read_archived(&ann(), &new_id()).await.unwrap(), None, "no such folder");

    let known = new_id();
    face.start(turn(&known, "why?")).await;
    assert_eq!(
        face.mirror.read_archived(&ann(), &known).await.unwrap(),
        None,
        "the store knows it"
    );
    face.leave().await;
}

#[tokio::test]
async fn a_damaged_folder_is_reported_as_corrupted() {
    let place = TestDir::new();
    let face = place.face().await;
    let cases = [("conversation.json", "{\"messages\": ["), ("status.json", "{\"status\": \"comp")];
    for (file, text) in cases {
        put(&place, &old(), "conversation.json", SAID);
        put(&place, &old(), file, text);
        let error = face.mirror.read_archived(&ann(), &old()).await.unwrap_err();
        let ArchiveError::Corrupted { file: named, .. } = &error else { panic!("{error}") };
        assert_eq!(*named, file);
    }
    let large = fs::File::create(place.folder(&old()).join("conversation.json")).unwrap();
    large.set_len(40 * 1024 * 1024).unwrap();
    let error = face.mirror.read_archived(&ann(), &old()).await.unwrap_err();
    assert!(error.to_string().contains("larger than 32 MiB"), "{error}");
    face.leave().await;
}

#[tokio::test]
async fn hostile_ids_and_links_open_nothing() {
    let place = TestDir::new();
    let face = place.face().await;
    let secret = place.dir.path().join("secret-folder");
    fs::create_dir_all(&secret).unwrap();
    fs::create_dir_all(place.logs_dir()).unwrap();
    fs::write(secret.join("conversation.json"), SAID).unwrap();
    let absolute = secret.to_str().unwrap();
    for hostile in ["../secret-folder", "./../secret-folder", absolute, "a/../../secret-folder"] {
        let found = face.mirror.read_archived(&ann(), &ConversationId::new(hostile)).await.unwrap();
        assert_eq!(found, None, "{hostile}");
    }
    symlink(&secret, place.logs_dir().join("linked-folder")).unwrap();
    fs::create_dir_all(place.logs_dir().join("linked-file")).unwrap();
    let link = place.logs_dir().join("linked-file/conversation.json");
    symlink(secret.join("conversation.json"), link).unwrap();
    fs::create_dir_all(place.logs_dir().join("a-directory/conversation.json")).unwrap();
    for odd in ["linked-folder", "linked-file", "a-directory"] {
        let found = face.mirror.read_archived(&ann(), &ConversationId::new(odd)).await.unwrap();
        assert_eq!(found, None, "{odd}");
    }
    // A link that stays inside the directory is as good as the folder.
    put(&place, &old(), "conversation.json", SAID);
    symlink(place.folder(&old()), place.logs_dir().join("another-name")).unwrap();
    let inside =
        face.mirror.read_archived(&ann(), &ConversationId::new("another-name")).await.unwrap();
    assert_eq!(inside.unwrap().conversation.conversation_id, "another-name");
    face.leave().await;
}
