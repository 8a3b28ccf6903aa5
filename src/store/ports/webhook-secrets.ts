/** Which secret: one per namespace, plugin, event and instance; `instanceId` is '' for webhooks that are not `multi`. */
export interface SecretKey {
  namespaceId: string;
  pluginId: string;
  event: string;
  instanceId: string;
}

/** Sealed values as stored. @spec Webhook secret record */
export interface SecretRecord extends SecretKey {
  current: string;
  previous: string | null;
  /** Epoch ms; from that millisecond on the previous secret is refused. */
  previousExpiresAt: number | null;
  rotatedAt: number;
  /** Epoch ms; when a sender last used the previous secret, kept after its end. */
  previousUsedAt: number | null;
  /** The previous secret once it is refused: tells the operator why a sender fails. */
  lapsed: string | null;
  /** Whether senders may name the namespace in the URL. */
  namespaceInUrl: boolean;
}

export interface SecretRotation {
  sealed: string;
  /** Until when the secret that this one replaces is still accepted. */
  graceEndsAt: number;
  now: number;
  /** Undefined: as it was, or a sender would be refused whose former secret is still accepted. */
  namespaceInUrl: boolean | undefined;
}

export interface WebhookSecretStore {
  /** Creates the secret or makes the current one the previous: racing callers get one rotation each. */
  rotate(key: SecretKey, next: SecretRotation): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /** Read at each delivery: one indexed look-up. */
  find(key: SecretKey): Promise<SecretRecord | undefined>;
  /** True when there was a secret to revoke. */
  revoke(key: SecretKey): Promise<boolean>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  /** Notes when the previous secret was last used. */
  previousUsed(key: SecretKey, at: number): Promise<void>;
}
