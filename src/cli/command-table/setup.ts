import type { CommandEntry } from './entry.ts';

/** Setting up, checking, moving and removing a platform. */
export const SETUP_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'Make a project: config, secrets, an example plugin',
    group: 'Setup',
    example: 'svc init my-project --plugin github',
    load: async () => (await import('../commands/init.ts')).init,
  },
  {
    name: 'doctor',
    summary: 'Check this machine, project and data, and say how to mend each fault',
    group: 'Setup',
    example: 'svc doctor --fix',
    load: async () => (await import('../commands/doctor.ts')).doctor,
  },
  {
    name: 'config show',
    summary: 'Show the configuration in effect: file, profile, environment',
    group: 'Setup',
    example: 'svc config show --origin',
    load: async () => (await import('../commands/config/show.ts')).show,
  },
  {
    name: 'config get',
    summary: 'Show one value of the configuration in effect',
    group: 'Setup',
    example: 'svc config get gateway.port',
    load: async () => (await import('../commands/config/get.ts')).get,
  },
  {
    name: 'config validate',
    summary: 'Check the configuration, every profile of it, and list each fault',
    group: 'Setup',
    example: 'svc config validate ./svc.config.json',
    load: async () => (await import('../commands/config/validate.ts')).validate,
  },
  {
    name: 'config schema',
    summary: 'Print the JSON Schema of svc.config.json',
    group: 'Setup',
    example: 'svc config schema > svc.schema.json',
    load: async () => (await import('../commands/config/schema.ts')).schema,
  },
  {
    name: 'backup',
    summary: 'Copy the data folder into an archive, also while the platform runs',
    group: 'Setup',
    example: 'svc backup svc-backup.tar.gz',
    load: async () => (await import('../commands/backup.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'Put a backup in the place of the data folder, which is kept aside',
    group: 'Setup',
    example: 'svc restore svc-backup.tar.gz --yes',
    load: async () => (await import('../commands/restore.ts')).restore,
  },
  {
    name: 'report',
    summary: 'Gather versions, config, status, checks and last logs for a bug report, without secrets',
    group: 'Setup',
    example: 'svc report svc-report.tar.gz',
    load: async () => (await import('../commands/report.ts')).report,
  },
  {
    name: 'reset',
    summary: 'Remove all data of this project: keys, secrets, deliveries, runs, state',
    group: 'Setup',
    example: 'svc reset',
    load: async () => (await import('../commands/reset.ts')).reset,
  },
  {
    name: 'service install',
    summary: 'Print a systemd unit (macOS: launchd) that runs the platform, or write it',
    group: 'Setup',
    example: 'svc service install --user --write',
    load: async () => (await import('../commands/service/install.ts')).install,
  },
  {
    name: 'service uninstall',
    summary: 'Remove the unit that svc service install --write has written',
    group: 'Setup',
    example: 'svc service uninstall --user',
    load: async () => (await import('../commands/service/uninstall.ts')).uninstall,
  },
];
