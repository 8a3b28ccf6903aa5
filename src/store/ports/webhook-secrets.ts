/**
 * Identifies a secret: one per namespace, plugin, event and instance; `instanceId` is '' for webhooks that
 * are not `multi`.
 */
export interface SecretKey {
  namespaceId: string;
  pluginId: string;
  event: string;
  instanceId: string;
}

/** Encrypted values as stored. @spec Webhook secret record */
export interface SecretRecord extends SecretKey {
  current: string;
  previous: string | null;
  /** Epoch ms; the previous secret is rejected from then on. */
  previousExpiresAt: number | null;
  rotatedAt: number;
  /** Epoch ms; when a sender last used the previous secret. Kept after it expires. */
  previousUsedAt: number | null;
  /** The expired previous secret: lets the gateway explain to the operator why a sender fails. */
  lapsed: string | null;
  /** Whether senders may put the namespace into the URL. */
  namespaceInUrl: boolean;
}

export interface SecretRotation {
  sealed: string;
  /** Until when the replaced secret is accepted. */
  graceEndsAt: number;
  now: number;
  /** Undefined keeps the current value, so that senders with the previous secret are not rejected. */
  namespaceInUrl: boolean | undefined;
}

export interface WebhookSecretStore {
  /** Creates the secret, or makes the current one the previous. Racing callers get one rotation each. */
  rotate(key: SecretKey, next: SecretRotation): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /** Runs at each delivery: one indexed lookup. */
  find(key: SecretKey): Promise<SecretRecord | undefined>;
  /** Returns true when there was a secret to revoke. */
  revoke(key: SecretKey): Promise<boolean>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  /** Records the last use of the previous secret. */
  previousUsed(key: SecretKey, at: number): Promise<void>;
}
