/** Makes a crate of the tests of the crate `kurrentdb`: one test of each function, on the server of `EVENTSTORE_URL`. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const MODULES = ['streams', 'persistent_subscriptions', 'operations'];

const manifest = (version: string): string => `[package]
name = "parley-clients"
version = "0.0.0"
edition = "2024"

[dependencies]
kurrentdb = "=${version}"
chrono = "0.4"
eyre = "0.6"
futures = "0.3"
names = "0.14"
serde_json = "1"
tokio = { version = "1", features = ["rt-multi-thread", "macros", "time"] }
tracing = "0.1"
uuid = { version = "1", features = ["v4"] }
`;

const START = `#![allow(dead_code)]
mod common;
#[path = "api"]
mod api {
${MODULES.map((name) => `    pub mod ${name};`).join('\n')}
}

fn client() -> kurrentdb::Client {
    let settings = std::env::var("EVENTSTORE_URL").unwrap().parse().unwrap();
    kurrentdb::Client::new(settings).unwrap()
}
`;

/** Compiles, which takes minutes the first time. */
export async function writeRustTests(folder: string, version: string): Promise<void> {
  await mkdir(join(folder, 'src'));
  await mkdir(join(folder, 'tests/api'), { recursive: true });
  await writeFile(join(folder, 'Cargo.toml'), manifest(version));
  await writeFile(join(folder, 'src/lib.rs'), '');
  const options = { cwd: folder, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await run('cargo', ['metadata', '--format-version', '1'], options);
  const { packages } = JSON.parse(stdout) as { packages: readonly { name: string; manifest_path: string }[] };
  const source = dirname(packages.find(({ name }) => name === 'kurrentdb')?.manifest_path ?? '');
  await copyFile(join(source, 'tests/common.rs'), join(folder, 'tests/common.rs'));
  let suite = START;
  for (const name of MODULES) {
    const text = await readFile(join(source, `tests/api/${name}.rs`), 'utf8');
    await writeFile(join(folder, `tests/api/${name}.rs`), text.replaceAll(/^async fn /gm, 'pub async fn '));
    suite += testsOf(name, text);
  }
  await writeFile(join(folder, 'tests/suite.rs'), suite);
  await run('cargo', ['test', '--no-run'], options);
}

function testsOf(module: string, text: string): string {
  const functions = [...text.matchAll(/^async fn (test_\w+)\(([^)]*)\)/gm)];
  const tests = functions.map(
    ([, name = '', parameters = '']) => `
    #[tokio::test(flavor = "multi_thread")]
    async fn ${name}() {
        let client = super::client();
        super::api::${module}::${name}(${argumentsFor(parameters)}).await.unwrap();
    }
`,
  );
  return `\nmod ${module} {${tests.join('')}}\n`;
}

function argumentsFor(parameters: string): string {
  const client = parameters.includes('operations::Client') ? '&client.clone().into()' : '&client';
  return parameters.includes('Generator') ? `${client}, &mut names::Generator::default()` : client;
}
