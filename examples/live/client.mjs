// The same in JavaScript (Node.js 18 or newer, without packages): node client.mjs [URL] [N_PULLS]
const [url = "http://127.0.0.1:7780", nPulls = "200"] = process.argv.slice(2);
const means = { red: 0.2, green: 0.5, blue: 0.8 };

async function ask(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// A reward counts once by its ticket, however often it is sent; so a lost connection is no reason to give up.
async function observe(ticket, reward, tries = 5) {
  try {
    return await ask("POST", "/v1/observe", { ticket, reward });
  } catch (error) {
    if (!(error instanceof TypeError) || tries === 1) throw error;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return observe(ticket, reward, tries - 1);
  }
}

for (let n = 0; n < Number(nPulls); n++) {
  const { arm, ticket } = await ask("POST", "/v1/choose", {});
  const reward = Math.random() < (means[arm] ?? 0.5) ? 1 : 0; // this is where a service would do its work
  await observe(ticket, reward);
}
const { arms } = await ask("GET", "/v1/state");
for (const { name, own_count, heard_count, mean } of arms) {
  console.log(`${name.padEnd(10)} ${own_count} own ${heard_count} heard, mean ${(mean ?? 0).toFixed(2)}`);
}
