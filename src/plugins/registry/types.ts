import type { LockEntry, ManifestV3, PlatformCode, WebhookHandlerDecl } from '../../contracts/index.ts';

/** A plugin whose manifest and files are valid. */
export interface LoadedPlugin {
  id: string;
  version: string;
  /** Real path of the plugin's folder. */
  root: string;
  manifest: ManifestV3;
  /** Path of the manifest module, if the manifest is code. */
  manifestModule?: string;
  /** Lock file entry of the plugin. Absent for plugins in the project's own folders. */
  locked?: LockEntry;
}

/** A plugin that an operator disabled. */
export interface DisabledPlugin {
  id: string;
  version: string;
  folder: string;
  locked: LockEntry;
}

/** One fault of a plugin. */
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
  >;
  /** Path in the manifest, such as `webhooks[0].auth`. It is empty if the fault concerns the whole file. */
  path: string;
  message: string;
  /**
   * Set for a webhook without sender authentication: the gateway must not start. @spec Webhook declaration:
   * auth
   */
  refusesGatewayStart?: true;
}

/** A plugin that was excluded because of its faults. */
export interface BrokenPlugin {
  folder: string;
  /** Id of the plugin. It is absent if the manifest is unreadable. */
  id?: string;
  faults: PluginFault[];
  locked?: LockEntry;
}

/** The plugins of a project: running, broken and disabled ones. */
export interface PluginRegistry {
  /** The running plugins, sorted so that each plugin follows its dependencies. */
  readonly plugins: readonly LoadedPlugin[];
  readonly broken: readonly BrokenPlugin[];
  readonly disabled: readonly DisabledPlugin[];
  find(id: string): LoadedPlugin | undefined;
  /** Throws PLUGIN_NOT_FOUND, with the plugin's faults or the most similar id. */
  require(id: string): LoadedPlugin;
  /** Throws PLUGIN_NOT_FOUND, or WEBHOOK_NOT_FOUND for an event that the plugin does not declare. */
  requireWebhook(pluginId: string, event: string): { plugin: LoadedPlugin; webhook: WebhookHandlerDecl };
}
