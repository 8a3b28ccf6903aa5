import type { LockEntry, ManifestV3, PlatformCode, WebhookHandlerDecl } from '../../contracts/index.ts';

/** A plugin whose manifest and files are valid. */
export interface LoadedPlugin {
  id: string;
  version: string;
  /** Real path of the plugin's folder. */
  root: string;
  manifest: ManifestV3;
  /** Path of the manifest module. Absent if the manifest is a file. */
  manifestModule?: string;
  /** Lock file entry. Present only for installed and linked plugins. */
  locked?: LockEntry;
}

export interface DisabledPlugin {
  id: string;
  version: string;
  folder: string;
  locked: LockEntry;
}

export interface PluginFault {
  code: Extract<
    PlatformCode,
    | 'VALIDATION_ERROR'
    | 'INTEGRITY_MISMATCH'
    | 'INVALID_MANIFEST'
    | 'INVALID_HANDLER'
    | 'PLUGIN_CONFLICT'
    | 'MISSING_DEPENDENCY'
    | 'CIRCULAR_DEPENDENCY'
    | 'SANDBOX_ERROR'
  >;
  /** Path in the manifest, such as `webhooks[0].auth`. Empty if the fault concerns the whole plugin. */
  path: string;
  message: string;
  /**
   * Whether the fault would let a webhook accept requests without authentication. Such a fault prevents the gateway's
   * start. @spec Webhook declaration: auth
   */
  refusesGatewayStart?: true;
}

/** A plugin that was excluded because of its faults. */
export interface BrokenPlugin {
  folder: string;
  /** Plugin id. Absent if the manifest cannot be read. */
  id?: string;
  faults: PluginFault[];
  locked?: LockEntry;
}

export interface PluginRegistry {
  /** The running plugins, sorted so that each plugin follows its dependencies. */
  readonly plugins: readonly LoadedPlugin[];
  readonly broken: readonly BrokenPlugin[];
  readonly disabled: readonly DisabledPlugin[];
  find(id: string): LoadedPlugin | undefined;
  /**
   * Returns a running plugin. Throws PLUGIN_NOT_FOUND with the faults of a broken plugin, or with a suggestion of a
   * similar id.
   */
  require(id: string): LoadedPlugin;
  /**
   * Returns a webhook and its plugin. Throws PLUGIN_NOT_FOUND if the plugin is not running. Throws WEBHOOK_NOT_FOUND if
   * the plugin does not declare the event.
   */
  requireWebhook(pluginId: string, event: string): { plugin: LoadedPlugin; webhook: WebhookHandlerDecl };
}
