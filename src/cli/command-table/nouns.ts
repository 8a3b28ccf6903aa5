/** Descriptions of nouns in `svc --help`. */
export const NOUNS: Readonly<Record<string, string>> = {
  agent: 'Run plugin code on this machine for a gateway',
  clients: 'Client credentials for programs',
  config: 'Show and check the configuration',
  events: 'Show analytics events',
  hosts: 'Manage machines that run plugin code',
  jobs: 'Manage background jobs of plugins',
  keys: 'Rotate the master key that encrypts secrets',
  plugins: 'Install, develop and manage plugins',
  schedules: 'Manage schedules of workflows',
  service: 'Run the platform as a system service',
  tokens: 'Manage access tokens',
  webhooks: 'Manage webhook secrets and inspect deliveries',
  workflows: 'Manage durable workflows and their runs',
};
