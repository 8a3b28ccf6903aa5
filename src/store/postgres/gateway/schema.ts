/** Tables of clients, hosts and tokens. With `collate "C"`, ids are sorted by their bytes, as in SQLite. */
export const IDENTITY = `
  create table svc.client (
    client_id text collate "C" primary key,
    host_id text collate "C" not null,
    namespace_id text collate "C" not null,
    name text not null,
    secret_hash text not null,
    created_at bigint not null,
    revoked_at bigint
  );
  create index client_host on svc.client (host_id);

  create table svc.refresh_token (
    token_hash text collate "C" primary key,
    family_id text collate "C" not null,
    client_id text collate "C" not null,
    created_at bigint not null,
    expires_at bigint not null,
    spent_at bigint
  );
  create index refresh_token_family on svc.refresh_token (family_id);
  create index refresh_token_client on svc.refresh_token (client_id);
  create index refresh_token_expiry on svc.refresh_token (expires_at);

  create table svc.host (
    host_id text collate "C" primary key,
    client_id text collate "C" not null,
    namespace_id text collate "C" not null,
    name text not null,
    public_key text not null,
    capabilities text not null,
    labels text not null,
    metadata text not null,
    created_at bigint not null,
    revoked_at bigint,
    session_id text,
    connected_at bigint,
    last_seen_at bigint,
    owner bigint
  );

  create table svc.minted_token (
    jti text collate "C" primary key,
    host_id text collate "C" not null,
    namespace_id text collate "C" not null,
    created_by text not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint
  );
  create index minted_token_expiry on svc.minted_token (expires_at);

  create table svc.revocation (
    sequence bigint generated always as identity primary key,
    kind text not null,
    subject text collate "C" not null,
    expires_at bigint,
    unique (kind, subject)
  );
  create index revocation_expiry on svc.revocation (expires_at) where expires_at is not null;`;

export const WEBHOOK_SECRETS = `
  create table svc.webhook_secret (
    namespace_id text collate "C" not null,
    plugin_id text collate "C" not null,
    event text collate "C" not null,
    instance_id text collate "C" not null,
    current text not null,
    previous text,
    previous_expires_at bigint,
    previous_used_at bigint,
    rotated_at bigint not null,
    namespace_in_url boolean not null,
    primary key (namespace_id, plugin_id, event, instance_id)
  );`;
