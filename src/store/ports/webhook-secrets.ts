/** Identifies the secret of a webhook. `instanceId` is empty for webhooks that are not declared as `multi`. */
export interface SecretKey {
  namespaceId: string;
  pluginId: string;
  event: string;
  instanceId: string;
}

/** A webhook secret, whose values are encrypted. @spec Webhook secret record */
export interface SecretRecord extends SecretKey {
  current: string;
  previous: string | null;
  /** Time at which the previous secret stops being accepted, in epoch ms. */
  previousExpiresAt: number | null;
  rotatedAt: number;
  /**
   * Time at which a sender last used the previous secret, in epoch ms. The time is kept after that secret has expired.
   */
  previousUsedAt: number | null;
  /** The expired previous secret. The gateway uses this secret to explain why the signatures of a sender fail. */
  lapsed: string | null;
  /** Whether a sender is allowed to name the namespace in the URL. */
  namespaceInUrl: boolean;
}

export interface SecretRotation {
  sealed: string;
  /** Time until which the replaced secret is accepted, in epoch ms. */
  graceEndsAt: number;
  now: number;
  /**
   * Whether the URL contains the namespace. `undefined` keeps the stored value, because a changed URL would break
   * senders.
   */
  namespaceInUrl: boolean | undefined;
}

export interface WebhookSecretStore {
  /** Creates the secret. An existing secret becomes the previous secret. */
  rotate(key: SecretKey, next: SecretRotation): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /**
   * Returns the secret of a webhook. Every delivery calls this method, so the query must be a single indexed lookup.
   */
  find(key: SecretKey): Promise<SecretRecord | undefined>;
  /** Revokes the secret. Returns true if there was a secret to revoke. */
  revoke(key: SecretKey): Promise<boolean>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  previousUsed(key: SecretKey, at: number): Promise<void>;
}
