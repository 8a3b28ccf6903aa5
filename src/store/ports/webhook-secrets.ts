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

/** A webhook secret with its values encrypted. @spec Webhook secret record */
export interface SecretRecord extends SecretKey {
  current: string;
  previous: string | null;
  /** When the previous secret expires, in epoch ms. */
  previousExpiresAt: number | null;
  rotatedAt: number;
  /** When a sender last used the previous secret, in epoch ms. The time is kept after that secret has expired. */
  previousUsedAt: number | null;
  /** The expired previous secret. With it, the gateway can explain to the operator why a sender fails. */
  lapsed: string | null;
  /** Whether senders may put the namespace into the URL. */
  namespaceInUrl: boolean;
}

export interface SecretRotation {
  sealed: string;
  /** Time until which the replaced secret is accepted, in epoch ms. */
  graceEndsAt: number;
  now: number;
  /** When undefined, the current value is kept, so that senders with the previous secret are not rejected. */
  namespaceInUrl: boolean | undefined;
}

export interface WebhookSecretStore {
  /** Creates the secret, or replaces the current secret and keeps it as the previous one. */
  rotate(key: SecretKey, next: SecretRotation): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /** Returns the secret. Runs at each delivery, so it must be a single indexed lookup. */
  find(key: SecretKey): Promise<SecretRecord | undefined>;
  /** Returns true when there was a secret to revoke. */
  revoke(key: SecretKey): Promise<boolean>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  /** Records when a sender last used the previous secret. */
  previousUsed(key: SecretKey, at: number): Promise<void>;
}
